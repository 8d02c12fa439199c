/* Every rank has a Python interpreter of its own: modules, variables, threads. */
#include <string.h>

#include "expect.h"

/* Of libpython's stable interface; its headers are a package of their own. */
void Py_InitializeEx(int handlers);
int PyRun_SimpleString(const char* text);
int Py_FinalizeEx(void);

static void run(const char* format) {
    char text[2000];
    snprintf(text, sizeof text, format, world_rank);
    expect(PyRun_SimpleString(text) == 0);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    Py_InitializeEx(0);
    run("import json, os, re, sys, threading\n"
        "rank = %d\n"
        "sys.path.append(f'folder of {rank}')\n"
        "os.environ['WARREN_PYTHON_RANK'] = str(rank)\n"
        "numbers = [rank * i for i in range(1000)]\n"
        "text = json.dumps({'rank': rank, 'sum': sum(numbers)})\n");
    together();
    run("given = %d\n"
        "assert rank == given and json.loads(text) == {'rank': rank, 'sum': rank * 499500}\n"
        "assert sys.path[-1] == f'folder of {rank}'\n"
        "assert os.environ['WARREN_PYTHON_RANK'] == str(rank)\n"
        "assert re.fullmatch('f(o+)', 'fooo').group(1) == 'ooo'\n"
        "thread = threading.Thread(target=numbers.append, args=(rank,))\n"
        "thread.start()\n"
        "thread.join()\n"
        "assert len(numbers) == 1001 and numbers[-1] == rank\n");
    together();
    expect(Py_FinalizeEx() == 0);
    return finish();
}
