"""The locality analyser: whose memory does each thread of a program touch, and what to change.

warren.locality.recording reads what `warren locality record` has written.
"""
