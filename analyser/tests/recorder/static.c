// A program that loads no libraries, and so no tracker either.
int main(void) {
    return 0;
}
