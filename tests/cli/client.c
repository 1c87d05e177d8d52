/* tests/cli/client.c: the smallest client of the installed library; prints the step time. */
#include <fsdpsim.h>
#include <stdio.h>

int main(void)
{
    struct fsdpsim *sim = fsdpsim_new();
    double step_time_s = 0.0;
    int code = 1;
    if (fsdpsim_load(sim, "llama3-8b_dgx-h100", NULL, 0) != FSDPSIM_OK ||
        fsdpsim_run(sim) != FSDPSIM_OK)
        fputs(fsdpsim_messages(sim), stderr);
    else if (fsdpsim_metric(sim, "step_time_s", &step_time_s)) {
        /* As many digits as needed to read the same number back. */
        char text[32];
        double back = 0.0;
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(text, sizeof(text), "%.*g", digits, step_time_s);
            if (sscanf(text, "%lf", &back) == 1 && back == step_time_s)
                break;
        }
        printf("%s\n", text);
        code = 0;
    }
    fsdpsim_free(sim);
    return code;
}
