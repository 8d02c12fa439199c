/* Another MPI library, where a program's DT_RPATH says: nobody should get here. */
__attribute__((visibility("default"))) int MPI_Init(int* argc, char*** argv) {
    (void)argc;
    (void)argv;
    return 13;
}
