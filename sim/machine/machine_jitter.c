/*
 * machine/machine_jitter.c: what `struct jitter` draws, and the ranks of a class beside the one
 * that is played.
 *
 * The machine plays one rank of a class, its first *member*. With jitter the others are no longer
 * in step with it, so each stream keeps, member by member, when that one's stream would stand here:
 *
 *     a segment      t_k += (time that the played one took) · x_k / x_0, from its issue on
 *     a copy         t_k += time that the played one took
 *     a record       stands passed by each member at its t_k
 *     a wait         t_k = max(t_k, that record passed by k)
 *     a collective   starts in each group when its last member arrives, max over k of t_k, and ends
 *                    for all of its members at once
 *
 * with x_k the member's factor: its own constant one, that of the step where it straggles, and that
 * of this segment. The played rank's collective starts as late as the last member of its group has
 * arrived: until then its kernel waits. This is the recursion that playing every rank would do
 * (`fold: off`), with the same numbers drawn, as long as members meet the same contention as the
 * played one.
 *
 * A number is a function of (seed, sample, rank, purpose) and of where it is used: (step,
 * operation) of a segment, the step of a straggler, (communicator, turn) of a collective. So it
 * does not depend on the order of events, on folding, or on who else draws.
 *
 * Order statistics: of a class of n > MEMBERS_MAX = m ranks, m members are kept, each for n/m. The
 * largest of m sums of draws has the median of the largest of n when each member's deviation is
 * wider by
 *
 *     w = q(n) / q(m),  q(n) = Phi^-1((1/2)^(1/n)), the median of the largest of n normal draws
 *
 * whether the draws meet one by one or add up before they meet, as sums of normals are normal. The
 * played one keeps its own width. Some rank of n/m straggles with probability 1 - (1 - p)^(n/m).
 * Example: n = 16,384, m = 256: q = 3.93 and 2.78, w = 1.41.
 *
 * Left out: the hosts of the members (a member that is late is issued to in time; one that is early
 * no earlier than the played one); pairs that send and receive meet as the played two do; a
 * communicator whose groups hold different members of several classes: the played ones start
 * together.
 */
#include <math.h>

#include "base/units.h"
#include "machine/machine_private.h"
#include "numeric/distribution.h"

enum { MEMBERS_MAX = 256 };

enum purpose {
    PURPOSE_KERNEL,
    PURPOSE_RANK,
    PURPOSE_STRAGGLER,
    PURPOSE_NETWORK,
    PURPOSE_KNOWLEDGE
};

struct crowd {
    int32_t count;   /* members; [0] is the one that is played */
    int64_t *ranks;  /* as random streams are numbered */
    double *paces;   /* constant factor of each */
    double *slowed;  /* … times that of `step` */
    int32_t step;    /* STEP_NEVER: none yet */
    double widening; /* of members from [1] on */
    double straggler_probability;
    int64_t **sites_ps; /* by site, then member: when it passed it */
};

/* Of a class of a communicator's groups: groups that a member stands for are its instances. */
struct gathering {
    int32_t instance_count;
    int32_t **instance_of; /* by seat, then member; the first seat's [0] is in 0 */
    int64_t *start_ps, *end_ps;
    double *factors;
    uint32_t *names; /* of the group, for its random stream */
};

static double draw(const struct jitter *jitter, uint32_t rank, enum purpose purpose, uint64_t index)
{
    struct philox stream;
    philox_init(&stream, jitter->seed, jitter->sample, rank, (uint32_t)purpose);
    return unit_of_bits(philox_u64_at(&stream, index));
}

static double draw_factor(const struct jitter *jitter, uint32_t rank, enum purpose purpose,
                          uint64_t index, double sigma, double widening)
{
    if (!(sigma > 0))
        return 1;
    const double z = normal_quantile(draw(jitter, rank, purpose, index));
    return lognormal_of_normal(z * widening, sigma);
}

static uint64_t step_index(int32_t step)
{
    return (uint64_t)((int64_t)step + 1);
}

/* ---- before playing ----------------------------------------------------------------------- */

static void crowd_find_paces(const struct jitter *jitter, struct crowd *crowd)
{
    for (int32_t k = 0; k < crowd->count; k++)
        crowd->paces[k] = draw_factor(jitter, (uint32_t)crowd->ranks[k], PURPOSE_RANK, 0,
                                      jitter->rank_sigma, k > 0 ? crowd->widening : 1);
}

static struct crowd *crowd_new(struct machine *machine, struct class_state *class)
{
    const struct jitter *jitter = machine->setup->jitter;
    const int64_t ranks = class->rank_class->count;
    const int32_t sites = class->score->site_count;
    struct crowd *crowd = ARENA_NEW(machine->arena, struct crowd);
    const int32_t count = ranks < MEMBERS_MAX ? (int32_t)ranks : MEMBERS_MAX;
    const double each = (double)ranks / count;
    *crowd = (struct crowd){.ranks = ARENA_ARRAY(machine->arena, int64_t, count),
                            .paces = ARENA_ARRAY(machine->arena, double, count),
                            .slowed = ARENA_ARRAY(machine->arena, double, count),
                            .step = STEP_NEVER,
                            .widening = 1,
                            .straggler_probability =
                                -expm1(each * log1p(-jitter->straggler_probability)),
                            .sites_ps = ARENA_ARRAY(machine->arena, int64_t *, sites)};
    if (ranks > count)
        crowd->widening = normal_max_quantile(0.5, (double)ranks) / normal_max_quantile(0.5, count);
    for (int32_t i = 0; i < sites && count > 1; i++)
        crowd->sites_ps[i] = ARENA_ARRAY(machine->arena, int64_t, count);
    for (int32_t i = 0; i < class->lane_count; i++) {
        class->lanes[i].members_ps = ARENA_ARRAY(machine->arena, int64_t, count);
        class->lanes[i].factors = ARENA_ARRAY(machine->arena, double, count);
    }
    return crowd;
}

/* Members by their rank; where the layout does not keep which ranks are in which class, numbered
   class after class. */
static void crowds_fill(struct machine *machine)
{
    const struct layout *layout = machine->setup->layout;
    int64_t first = 0;
    for (int64_t rank = 0; layout->each != NULL && rank < layout->ranks; rank++) {
        const struct class_state *class = &machine->classes[layout->each->class_of[rank]];
        if (class->crowd->count < MEMBERS_MAX)
            class->crowd->ranks[class->crowd->count++] = rank;
    }
    for (int32_t i = 0; layout->each == NULL && i < machine->class_count; i++) {
        struct crowd *crowd = machine->classes[i].crowd;
        const int64_t ranks = machine->classes[i].rank_class->count;
        while (crowd->count < ranks && crowd->count < MEMBERS_MAX) {
            crowd->ranks[crowd->count] = first + crowd->count;
            crowd->count++;
        }
        first += ranks;
    }
}

static int32_t instance_find(struct gathering *gathering, int32_t *known, int64_t group)
{
    if (known[group] == 0) {
        gathering->names[gathering->instance_count] = (uint32_t)group;
        known[group] = ++gathering->instance_count;
    }
    return known[group] - 1;
}

/* `known`: by group of the communicator, zeroed. */
static void gathering_set_up(struct machine *machine, struct comm_state *comm, int32_t *known)
{
    struct arena *arena = machine->arena;
    struct gathering *gathering = ARENA_NEW(arena, struct gathering);
    const struct group *group =
        &machine->setup->programs[0]->communicators.items[comm->communicator].group;
    int32_t most = 0;
    for (int32_t seat = 0; seat < comm->seat_count; seat++)
        most += machine->classes[comm->group->classes[seat]].crowd->count;
    gathering->names = ARENA_ARRAY(arena, uint32_t, most);
    gathering->instance_of = ARENA_ARRAY(arena, int32_t *, comm->seat_count);
    for (int32_t seat = 0; seat < comm->seat_count; seat++) {
        const struct crowd *crowd = machine->classes[comm->group->classes[seat]].crowd;
        gathering->instance_of[seat] = ARENA_ARRAY(arena, int32_t, crowd->count);
        for (int32_t k = 0; k < crowd->count; k++)
            gathering->instance_of[seat][k] = instance_find(
                gathering, known,
                machine->setup->layout->each == NULL ? 0 : group_of_rank(group, crowd->ranks[k]));
    }
    gathering->start_ps = ARENA_ARRAY(arena, int64_t, gathering->instance_count);
    gathering->end_ps = ARENA_ARRAY(arena, int64_t, gathering->instance_count);
    gathering->factors = ARENA_ARRAY(arena, double, gathering->instance_count);
    comm->gathering = gathering;
}

void jitter_set_up(struct machine *machine)
{
    const struct jitter *jitter = machine->setup->jitter;
    for (int32_t i = 0; i < machine->comm_count; i++)
        machine->comms[i].stretch = 1;
    if (jitter == NULL)
        return;
    for (int32_t i = 0; i < machine->class_count; i++)
        machine->classes[i].crowd = crowd_new(machine, &machine->classes[i]);
    crowds_fill(machine);
    for (int32_t i = 0; i < machine->class_count; i++)
        crowd_find_paces(jitter, machine->classes[i].crowd);
    for (int32_t i = 0; i < machine->comm_count; i++) {
        struct comm_state *comm = &machine->comms[i];
        struct arena scratch = {0};
        if (!comm->is_pair)
            gathering_set_up(machine, comm,
                             ARENA_ARRAY(&scratch, int32_t, machine->setup->layout->ranks));
        arena_release(&scratch);
    }
}

double jitter_limit(const struct jitter *jitter)
{
    /* So many sigma all along. */
    static const double most = 4;
    if (jitter == NULL)
        return 1;
    return fmax(jitter->straggler_slowdown *
                    exp(most * (jitter->kernel_sigma + jitter->rank_sigma)),
                exp(most * jitter->network_sigma));
}

/* ---- streams ------------------------------------------------------------------------------ */

void jitter_hold(struct lane *lane, int64_t until_ps)
{
    const struct crowd *crowd = lane->class->crowd;
    for (int32_t k = 1; crowd != NULL && k < crowd->count; k++)
        lane->members_ps[k] = lane->members_ps[k] > until_ps ? lane->members_ps[k] : until_ps;
}

static void crowd_enter_step(const struct jitter *jitter, struct crowd *crowd, int32_t step)
{
    if (crowd->step == step)
        return;
    crowd->step = step;
    for (int32_t k = 0; k < crowd->count; k++) {
        const double probability =
            k > 0 ? crowd->straggler_probability : jitter->straggler_probability;
        const bool is_slow =
            probability > 0 && draw(jitter, (uint32_t)crowd->ranks[k], PURPOSE_STRAGGLER,
                                    step_index(step)) < probability;
        crowd->slowed[k] = crowd->paces[k] * (is_slow ? jitter->straggler_slowdown : 1);
    }
}

/* Streams run ahead of each other by less than a step or two: the step's factors are found again
   when another stream asks for another step. */
static void find_factors(const struct machine *machine, struct lane *lane)
{
    const struct jitter *jitter = machine->setup->jitter;
    struct crowd *crowd = lane->class->crowd;
    const struct program *program = lane->class->score->program;
    const struct op_list *ops = lane->step < 0 ? &program->prologue : &program->step;
    const uint64_t index = step_index(lane->step) << 32 | (uint64_t)(lane->at->op - ops->items);
    crowd_enter_step(jitter, crowd, lane->step);
    for (int32_t k = 0; k < crowd->count; k++)
        lane->factors[k] =
            crowd->slowed[k] * draw_factor(jitter, (uint32_t)crowd->ranks[k], PURPOSE_KERNEL, index,
                                           jitter->kernel_sigma, k > 0 ? crowd->widening : 1);
}

double jitter_begin_segment(const struct machine *machine, struct lane *lane, int64_t issue_ps)
{
    if (lane->class->crowd == NULL)
        return 1;
    if (lane->factors_of != lane->at || lane->factors_step != lane->step) {
        find_factors(machine, lane);
        lane->factors_of = lane->at;
        lane->factors_step = lane->step;
    }
    jitter_begin(machine, lane, issue_ps);
    return lane->factors[0];
}

void jitter_begin(const struct machine *machine, struct lane *lane, int64_t issue_ps)
{
    lane->begun_ps = machine->engine.now_ps;
    jitter_hold(lane, issue_ps);
}

void jitter_end(const struct machine *machine, struct lane *lane, bool is_segment)
{
    const struct crowd *crowd = lane->class->crowd;
    const int64_t played_ps = machine->engine.now_ps - lane->begun_ps;
    lane->done_s += is_segment ? lane->activity.work : 0;
    for (int32_t k = 1; crowd != NULL && k < crowd->count; k++)
        lane->members_ps[k] +=
            is_segment ? llround((double)played_ps * (lane->factors[k] / lane->factors[0]))
                       : played_ps;
}

void jitter_record(const struct lane *lane, int32_t site)
{
    const struct crowd *crowd = lane->class->crowd;
    for (int32_t k = 1; crowd != NULL && k < crowd->count; k++)
        crowd->sites_ps[site][k] = lane->members_ps[k];
}

void jitter_wait(struct lane *lane, int32_t site)
{
    const struct crowd *crowd = lane->class->crowd;
    for (int32_t k = 1; crowd != NULL && k < crowd->count; k++)
        if (lane->members_ps[k] < crowd->sites_ps[site][k])
            lane->members_ps[k] = crowd->sites_ps[site][k];
}

/* ---- collectives -------------------------------------------------------------------------- */

static int64_t computed_ps(const struct machine *machine, const struct class_state *class)
{
    return class->computed_ps + (class->computing_count > 0 ? machine->engine.now_ps : 0);
}

/* Work of segments, in seconds alone. */
static double computed_s(const struct machine *machine, const struct class_state *class)
{
    double done_s = 0;
    for (int32_t i = 0; i < class->lane_count; i++) {
        const struct lane *lane = &class->lanes[i];
        const struct activity *now = &lane->activity;
        done_s += lane->done_s;
        if (lane->state == LANE_BUSY && lane->at->kind == TAPE_SEGMENT)
            done_s += now->work - now->work_left +
                      now->rate * s_from_ps(machine->engine.now_ps - now->updated_ps);
    }
    return done_s;
}

void jitter_arrive(const struct machine *machine, struct lane *lane, int32_t seat)
{
    const struct crowd *crowd = lane->class->crowd;
    const struct gathering *gathering = lane->comm->gathering;
    if (crowd == NULL)
        return;
    jitter_begin(machine, lane, lane_issue_ps(lane));
    lane->computed_ps = computed_ps(machine, lane->class);
    lane->computed_s = computed_s(machine, lane->class);
    for (int32_t k = 1; gathering != NULL && k < crowd->count; k++) {
        const int64_t free_ps = gathering->end_ps[gathering->instance_of[seat][k]];
        lane->members_ps[k] = lane->members_ps[k] > free_ps ? lane->members_ps[k] : free_ps;
    }
}

/* The network's factor for a collective of a group, and what is not known of its measured time. */
static double network_factor(const struct machine *machine, const struct comm_state *comm,
                             uint32_t group)
{
    const struct jitter *jitter = machine->setup->jitter;
    const uint64_t index = (uint64_t)comm->communicator << 40 | (uint64_t)comm->done_count;
    double factor = draw_factor(jitter, group, PURPOSE_NETWORK, index, jitter->network_sigma, 1);
    if (jitter->draws_knowledge && comm->plan->table > 0)
        factor *= draw_factor(jitter, 0, PURPOSE_KNOWLEDGE, (uint64_t)comm->plan->table,
                              comm->plan->error_sigma, 1);
    return factor;
}

static void start_late(struct comm_state *comm, int32_t seat, const int64_t *members_ps,
                       int32_t count)
{
    struct gathering *gathering = comm->gathering;
    for (int32_t k = 0; k < count; k++) {
        int64_t *start_ps = &gathering->start_ps[gathering->instance_of[seat][k]];
        const int64_t at_ps = k == 0 ? comm->members[seat]->begun_ps : members_ps[k];
        *start_ps = *start_ps > at_ps ? *start_ps : at_ps;
    }
}

int64_t jitter_gather(const struct machine *machine, struct comm_state *comm)
{
    struct gathering *gathering = comm->gathering;
    const int64_t now_ps = machine->engine.now_ps;
    if (machine->setup->jitter == NULL)
        return now_ps;
    if (gathering == NULL) { /* a pair */
        comm->stretch = network_factor(machine, comm,
                                       (uint32_t)comm->members[0]->class->rank_class->first_rank);
        return now_ps;
    }
    for (int32_t i = 0; i < gathering->instance_count; i++) {
        gathering->start_ps[i] = 0;
        gathering->factors[i] = network_factor(machine, comm, gathering->names[i]);
    }
    for (int32_t seat = 0; seat < comm->seat_count; seat++)
        start_late(comm, seat, comm->members[seat]->members_ps,
                   comm->members[seat]->class->crowd->count);
    if (gathering->start_ps[0] < now_ps)
        gathering->start_ps[0] = now_ps;
    comm->stretch = gathering->factors[0];
    return gathering->start_ps[0];
}

/* Kernels of the played one that ran since its collective arrived, or began to move bytes. */
static int64_t note_lost(const struct machine *machine, struct lane *comm_lane, double *lost_frac)
{
    const struct class_state *class = comm_lane->class;
    const int64_t own_ps = computed_ps(machine, class) - comm_lane->computed_ps;
    const double work_s = computed_s(machine, class) - comm_lane->computed_s;
    if (own_ps > 0)
        *lost_frac = fmax(0, 1 - work_s / s_from_ps(own_ps));
    comm_lane->computed_ps += own_ps;
    comm_lane->computed_s += work_s;
    return own_ps;
}

/* Beside a collective kernels lose some of their rate: what the played one's lost says how much (a
   member's segment takes as many times as long without it). Members lose that in their own wait …
 */
static void hold_members(const struct machine *machine, const struct gathering *gathering,
                         struct lane *waiting, int32_t seat)
{
    const struct class_state *class = waiting->class;
    const double own_ps = (double)note_lost(machine, waiting, &waiting->held_frac);
    for (int32_t i = 0; i < class->lane_count && waiting->held_frac > 0; i++) {
        struct lane *lane = &class->lanes[i];
        if (lane->factors_of == NULL)
            continue;
        for (int32_t k = 1; k < class->crowd->count; k++) {
            const int64_t start_ps = gathering->start_ps[gathering->instance_of[seat][k]];
            const double wait_ps = (double)(start_ps - waiting->members_ps[k]);
            const double own = own_ps * (lane->factors[k] / lane->factors[0]);
            lane->members_ps[k] += llround((wait_ps - own) * waiting->held_frac);
        }
    }
}

/* … and while bytes move, those that compute longer into that time than the played one. */
static void move_members(const struct machine *machine, const struct gathering *gathering,
                         struct lane *moving, int32_t seat)
{
    const struct class_state *class = moving->class;
    const double own_ps = (double)note_lost(machine, moving, &moving->moved_frac);
    for (int32_t i = 0; i < class->lane_count && moving->moved_frac > 0; i++) {
        struct lane *lane = &class->lanes[i];
        if (lane->factors_of == NULL)
            continue;
        for (int32_t k = 1; k < class->crowd->count; k++) {
            const int32_t instance = gathering->instance_of[seat][k];
            const double all_ps =
                (double)(gathering->end_ps[instance] - gathering->start_ps[instance]);
            const double beside_ps =
                fmin(all_ps, (double)(lane->members_ps[k] - gathering->start_ps[instance]));
            if (beside_ps > own_ps)
                lane->members_ps[k] += llround((beside_ps - own_ps) * moving->moved_frac);
        }
    }
}

void jitter_start(const struct machine *machine, const struct comm_state *comm)
{
    for (int32_t seat = 0; comm->gathering != NULL && seat < comm->seat_count; seat++)
        hold_members(machine, comm->gathering, comm->members[seat], seat);
}

void jitter_disperse(const struct machine *machine, struct comm_state *comm)
{
    struct gathering *gathering = comm->gathering;
    const int64_t now_ps = machine->engine.now_ps;
    if (machine->setup->jitter == NULL)
        return;
    for (int32_t i = 0; gathering != NULL && i < gathering->instance_count; i++)
        gathering->end_ps[i] =
            gathering->start_ps[i] + llround((double)(now_ps - gathering->start_ps[0]) *
                                             (gathering->factors[i] / gathering->factors[0]));
    for (int32_t seat = 0; seat < comm->seat_count; seat++) {
        struct lane *lane = comm->members[seat];
        if (gathering == NULL)
            jitter_end(machine, lane, false);
        else
            move_members(machine, gathering, lane, seat);
        for (int32_t k = 1; gathering != NULL && k < lane->class->crowd->count; k++)
            lane->members_ps[k] = gathering->end_ps[gathering->instance_of[seat][k]];
    }
}
