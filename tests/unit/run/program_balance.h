/*
 * tests/unit/run/program_balance.h: allocations of a program, by its operations.
 *
 * Plays prologue and steps without a machine: a tensor is allocated only when it is not there and
 * freed only when it is, and a later step leaves what the one before it left.
 */
#ifndef FSDPSIM_TESTS_PROGRAM_BALANCE_H
#define FSDPSIM_TESTS_PROGRAM_BALANCE_H

#include "schedule/program.h"

void program_check_balance(const struct program *program);
/* Bytes of a category that are there when a step has ended. */
int64_t program_kept_bytes(const struct program *program, enum memory_category category);

#endif
