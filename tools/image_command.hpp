// `warren image check PROGRAM`: whether a program can run as a private image, item by item.
#pragma once

// The exit code: 0 when it can, 1 when it can't.
int check_image(const char* path);
