# A breakpoint in the program is hit in every copy, its static variables are each copy's own (of global
# ones gdb 13 shows the first copy's, as it does for copies made by dlmopen), and its stack is there.
set pagination off
set confirm off
set breakpoint pending on
set debuginfod enabled off
break everything.c:parse
run
backtrace 2
print constructed
set variable constructed = 1000
continue
print constructed
kill
