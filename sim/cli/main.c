/* cli/main.c: fsdpsim. */
#include <stddef.h>

#include "cli/command_line.h"

int main(int argc, char **argv)
{
    return command_line_play("fsdpsim", argc, argv, NULL);
}
