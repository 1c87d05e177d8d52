/* cli/help.c: help texts and shell completion; see help.h. */
#include "cli/help.h"

#include <string.h>

#include "cli/options.h"

static const char exit_codes[] =
    "exit codes: 0 done, 1 the world failed (disk, database), 2 the input is wrong,\n"
    "            3 an --assert did not hold, 4 some points failed,\n"
    "            75 stopped: the same command goes on\n";

void help_write_overview(FILE *file)
{
    fputs(
        "fsdpsim predicts what one FSDP training step costs: time, exposed communication, memory\n"
        "\n"
        "  fsdpsim run llama3-8b_dgx-h100             a shipped configuration\n"
        "  fsdpsim run my.yaml -s nodes=4 --json      yours, with an override, for a script\n"
        "\n"
        "usage: fsdpsim VERB [FILE] [options]\n",
        file);
    for (const struct verb *verb = verb_table; verb < verb_table + VERB_COUNT; verb++)
        fprintf(file, "  %-11s %s\n", verb->name, verb->summary);
    fputs("\n'fsdpsim VERB --help' says more, 'fsdpsim --version' which version this is\n", file);
}

/* Breaks `text` into lines of at most `width` characters, indented by `indent` after the first. */
static void write_wrapped(FILE *file, const char *text, int indent, size_t width)
{
    while (strlen(text) > width) {
        size_t cut = width;
        while (cut > 0 && text[cut] != ' ')
            cut--;
        if (cut == 0)
            break;
        fprintf(file, "%.*s\n%*s", (int)cut, text, indent, "");
        text += cut + 1;
    }
    fprintf(file, "%s\n", text);
}

static void write_option(FILE *file, const struct option *option)
{
    enum { NAME_WIDTH = 28, HELP_WIDTH = 68 };
    char name[64];
    const char *value = option->value_name != NULL ? option->value_name : "";
    const char *blank = option->value_name != NULL ? " " : "";
    if (option->letter != 0)
        snprintf(name, sizeof(name), "-%c, --%s%s%s", option->letter, option->name, blank, value);
    else
        snprintf(name, sizeof(name), "    --%s%s%s", option->name, blank, value);
    fprintf(file, "  %-*s ", NAME_WIDTH, name);
    write_wrapped(file, option->help, NAME_WIDTH + 3, HELP_WIDTH);
}

void help_write_verb(const struct verb *verb, FILE *file)
{
    for (int k = 0; k < 2; k++)
        fprintf(file, "  %-52s # %s\n", verb->examples[k].command, verb->examples[k].says);
    fprintf(file, "\nusage: fsdpsim %s %s [options]\n%s\n", verb->name, verb->arguments,
            verb->text);
    for (const struct option *option = option_table; option->name != NULL; option++) {
        if (option_belongs(option, verb) && !option->is_hidden)
            write_option(file, option);
    }
    fprintf(file, "\n%s", exit_codes);
}

/* ---- man page ----------------------------------------------------------------------------- */

/* Text as roff: no line may look like a request, dashes are real ones. */
static void write_roff(FILE *file, const char *text)
{
    bool is_line_start = true;
    for (; *text != '\0'; text++) {
        if (is_line_start && (*text == '.' || *text == '\''))
            fputs("\\&", file);
        if (*text == '\\')
            fputs("\\e", file);
        else if (*text == '-')
            fputs("\\-", file);
        else
            fputc(*text, file);
        is_line_start = *text == '\n';
    }
}

static void write_man_option(FILE *file, const struct option *option)
{
    fputs(".TP\n", file);
    if (option->letter != 0)
        fprintf(file, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", file);
    write_roff(file, option->name);
    fputs("\\fR", file);
    if (option->value_name != NULL)
        fprintf(file, " \\fI%s\\fR", option->value_name);
    fputc('\n', file);
    write_roff(file, option->help);
    fputs(" (", file);
    const char *comma = "";
    bool is_everywhere = true;
    for (int k = 0; k < VERB_COUNT; k++)
        is_everywhere = is_everywhere && option_belongs(option, &verb_table[k]);
    for (int k = 0; k < VERB_COUNT && !is_everywhere; k++) {
        if (!option_belongs(option, &verb_table[k]))
            continue;
        fprintf(file, "%s%s", comma, verb_table[k].name);
        comma = ", ";
    }
    fputs(is_everywhere ? "all verbs)\n" : ")\n", file);
}

static void write_man_verb(FILE *file, const struct verb *verb)
{
    fprintf(file, ".SS \"%s %s\"\n", verb->name, verb->arguments);
    write_roff(file, verb->text);
    fputs(".PP\n.nf\n", file);
    for (int k = 0; k < 2; k++) {
        fputs(".RS 4\n", file);
        write_roff(file, verb->examples[k].command);
        fputs("\n.RE\n", file);
    }
    fputs(".fi\n", file);
}

void help_write_man(FILE *file)
{
    fputs(".\\\" Generated from the option table: fsdpsim help --man\n"
          ".TH FSDPSIM 1 \"\" \"fsdpsim\" \"User commands\"\n"
          ".SH NAME\n"
          "fsdpsim \\- predict what one FSDP training step costs\n"
          ".SH SYNOPSIS\n"
          "\\fBfsdpsim\\fR \\fIVERB\\fR [\\fIFILE\\fR] [options]\n"
          ".br\n"
          "\\fBfsdpsim\\fR \\fB\\-\\-help\\fR | \\fB\\-\\-version\\fR\n"
          ".SH DESCRIPTION\n"
          "Simulates one training step of a model on a GPU cluster under a PyTorch FSDP policy:\n"
          "its time, the part of it that is exposed communication, and the memory of each GPU.\n"
          "Results go to standard output, messages to standard error.\n"
          ".SH VERBS\n",
          file);
    for (int k = 0; k < VERB_COUNT; k++)
        write_man_verb(file, &verb_table[k]);
    fputs(".SH OPTIONS\n", file);
    for (const struct option *option = option_table; option->name != NULL; option++) {
        if (!option->is_hidden)
            write_man_option(file, option);
    }
    fputs(".SH EXIT STATUS\n"
          ".IP 0 4\ndone\n"
          ".IP 1 4\nthe world failed: disk, database, closed pipe\n"
          ".IP 2 4\nthe input is wrong: a file, a flag or a value\n"
          ".IP 3 4\nan \\fB\\-\\-assert\\fR did not hold\n"
          ".SH ENVIRONMENT\n"
          ".IP FSDPSIM_DATA 4\n"
          "folders, separated by colons, with models/, topologies/ and configs/ to search first\n"
          ".IP FSDPSIM_DB 4\n"
          "the results database\n"
          ".IP \"XDG_DATA_HOME, HOME\" 4\n"
          "the XDG data folder is $XDG_DATA_HOME/fsdpsim, by default $HOME/.local/share/fsdpsim; "
          "with neither set the database is fsdpsim.db in the working folder\n"
          ".IP NO_COLOR 4\n"
          "when not empty: no colour\n",
          file);
}

/* ---- completion --------------------------------------------------------------------------- */

static void write_completion_verb(FILE *file, const struct verb *verb)
{
    fprintf(file, "    %s)\n        flags='", verb->name);
    const char *blank = "";
    for (const struct option *option = option_table; option->name != NULL; option++) {
        if (!option_belongs(option, verb) || option->is_hidden)
            continue;
        fprintf(file, "%s--%s", blank, option->name);
        blank = " ";
    }
    fputs("'\n        words='", file);
    blank = "";
    if (verb->id == VERB_HELP) {
        for (int k = 0; k < VERB_COUNT; k++)
            fprintf(file, "%s%s", k > 0 ? " " : "", verb_table[k].name);
    }
    for (const char *const *word = verb->words; word != NULL && *word != NULL; word++) {
        fprintf(file, "%s%s", blank, *word);
        blank = " ";
    }
    fputs("'\n        ;;\n", file);
}

void help_write_bash_completion(FILE *file)
{
    fputs("# bash completion for fsdpsim, generated: fsdpsim completion bash\n"
          "_fsdpsim() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} flags= words=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W '",
          file);
    for (int k = 0; k < VERB_COUNT; k++)
        fprintf(file, "%s ", verb_table[k].name);
    fputs("--help --version' -- \"$cur\")\n"
          "        return\n"
          "    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          file);
    for (int k = 0; k < VERB_COUNT; k++)
        write_completion_verb(file, &verb_table[k]);
    fputs("    esac\n"
          "    COMPREPLY=()\n"
          "    if [[ $cur == -* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$cur\")\n"
          "    elif [ \"$COMP_CWORD\" -eq 2 ] && [ -n \"$words\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "    fi\n"
          "}\n"
          "# Where there is nothing to offer, file names are.\n"
          "complete -o default -F _fsdpsim fsdpsim\n",
          file);
}
