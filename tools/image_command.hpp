// `warren image check PROGRAM`: whether a program can run as a private image, item by item.
#pragma once

// Returns the exit code: 0 if it can, else 1.
int check_image(const char* path);
