/* observe/critical_private.h: shared by the path and the waits. */
#ifndef FSDPSIM_OBSERVE_CRITICAL_PRIVATE_H
#define FSDPSIM_OBSERVE_CRITICAL_PRIVATE_H

#include "observe/critical_path.h"

enum path_cause performance_cause(const struct program *program,
                                  const struct performance *performance);
enum path_cause issue_cause(const struct issue *issue);
/* The entry that ends where the place is; NULL: none. */
const struct journal_entry *journal_before(const struct journal *journal,
                                           struct journal_place place);
/* Fills path->waits. */
void critical_waits_find(struct arena *arena, const struct journal *journal,
                         struct critical_path *path, int32_t stream);

#endif
