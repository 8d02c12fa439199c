// A program that loads no libraries and therefore no tracker.
int main(void) {
    return 0;
}
