/* See json_keys.h. A row is a path, a type and a line of meaning. Paths: `a.b`, `list[].key`,
 * `map.*` for any name; '?' behind one: it may be absent. Types: bool, int, number, text, any,
 * config (the input's format), {} (rows below it), {TYPE} (any names), [TYPE], &NAME (a part used
 * by several);
 * '?' behind one: or null. */
#include "cli/json_keys.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "hw/device.h"
#include "models/schema.h"

struct row {
    const char *path, *type, *doc;
};

static const struct row head[] = {
    {"name", "text?", "the model's; of a file or a log where it is of one; null: of several"},
    {"version", "text", "of hbmsim"},
    {"compiler", "text?", "xla-tpu, xla-gpu, torch; of a dump also xla-cpu"},
    {"device", "text?", "a name of the table of devices, or a profile file"},
    {"configuration", "config?", "every key of what was asked, defaults too"},
    {0}};

/* ---- parts */

static const struct row prediction[] = {
    {"fits", "bool", "within the budget, the loading too"},
    {"verdict", "text", "fits, tight (only the upper end of the interval does not), does not fit"},
    {"peak_bytes", "int", "most that is alive at once on a device"},
    {"budget_bytes", "int", "what a program may use of a device"},
    {"argument_bytes", "int", "of the step: state and batch"},
    {"output_bytes", "int", "of the step: the new state"},
    {"alias_bytes", "int", "of the output, in the argument's place"},
    {"temp_bytes", "int", "all between"},
    {"host_bytes", "int", "in the host's memory, for each device"},
    {"ranks?", "[{}]", "with a pipeline whose ranks run programs of their own"},
    {"ranks[].rank", "int", "from 0"},
    {"ranks[].peak_bytes", "int", "its peak"},
    {"allocated_bytes?", "int", "compiler torch: the allocator's peak of what is in use"},
    {"active_bytes?", "int", "compiler torch: with what waits for another stream"},
    {"reserved_bytes?", "int", "compiler torch: taken from the device"},
    {"interval", "{}?", "of the peak, from records like it; null: none is like it"},
    {"interval.low_bytes", "int", "lower end"},
    {"interval.high_bytes", "int", "upper end; what fits is what has it within the budget"},
    {"interval.confidence", "number", "from 0 to 1"},
    {"interval.records", "int", "how many"},
    {"interval.like", "text", "what they have in common"},
    {"budget", "{}", "where budget_bytes comes from"},
    {"budget.device_bytes", "int", "usable memory of the device"},
    {"budget.memory_fraction", "number", "share of it that programs get"},
    {"budget.beside_bytes", "int", "what the runtime takes beside the program"},
    {"budget.host_bytes", "int?", "a device's share of the host's memory"},
    {"step_seconds", "number", "time of a step"},
    {"tokens_per_second", "number", "of all devices"},
    {"mfu", "number",
     "share of the device's peak rate, in its fastest type, that the model's products take"},
    {"peak", "{}", "what stands there"},
    {"peak.at", "text", "the op at which it is reached"},
    {"peak.categories", "{int}", "bytes by category; they sum to peak_bytes"},
    {"peak.tensors", "[{}]", "the largest first"},
    {"peak.tensors[].name", "text", "of the tensor"},
    {"peak.tensors[].category", "text", "as in categories"},
    {"peak.tensors[].bytes", "int", "that it takes there"},
    {"peak.tensors[].why", "text", "the rule that keeps it"},
    {"load?", "{}", "where the configuration has load"},
    {"load.device_peak_bytes", "int", "while the state is built"},
    {"load.host_peak_bytes", "int", "of a host"},
    {"load.by_processes", "[{}]", "the same of other numbers of processes"},
    {"load.by_processes[].processes", "int", "hosts that take part"},
    {"load.by_processes[].device_peak_bytes", "int", "as above"},
    {"load.by_processes[].host_peak_bytes", "int", "as above"},
    {0}};

static const struct row lever[] = {{"name", "text", "the keys that it sets"},
                                   {"lever", "text", "what it is"},
                                   {"applies", "bool", "whether it changes anything here"},
                                   {"freed_bytes", "int", "at the peak; below 0: it needs more"},
                                   {"cost_seconds", "number", "of a step; below 0: it is faster"},
                                   {"why", "text?", "why it does not apply"},
                                   {0}};

static const struct row stats[] = {
    {"n", "int", "cases with a prediction"},
    {"failed", "int", "cases without"},
    {"median_abs_pct", "number", "median error in per cent"},
    {"p90_abs_pct", "number", "90th percentile"},
    {"p95_abs_pct", "number", "95th percentile"},
    {"max_abs_pct", "number", "the worst"},
    {"bias_pct", "number", "mean error with its sign"},
    {"fit_agreement?", "number", "right verdicts at 0.8, 0.9, 1.1 and 1.25 of the measured peak"},
    {"coverage?", "number", "peaks within their interval"},
    {"median_width_pct?", "number", "of the intervals"},
    {"rank_correlation?", "number?", "of times: measured against predicted order"},
    {0}};

static const struct row part[] = {{"measured_bytes", "int?", "null: not measured"},
                                  {"predicted_bytes", "int?", "null: no prediction"},
                                  {0}};

static const struct row order[] = {{"bytes", "int", "what the module takes in this order"},
                                   {"entry_ops", "int", "ops of the entry computation"},
                                   {"entry_in_order", "int", "of them in the printed order"},
                                   {"inner_ops", "int", "ops of the other computations"},
                                   {"inner_in_order", "int", "of them in the printed order"},
                                   {0}};

static const struct row heap[] = {{"bytes", "int", "its size"},
                                  {"buffers", "[{}]", "where each lies and how long"},
                                  {"buffers[].name", "text", "of the buffer"},
                                  {"buffers[].category", "text", "as at the peak"},
                                  {"buffers[].offset_bytes", "int", "its address in the heap"},
                                  {"buffers[].bytes", "int", "its size"},
                                  {"buffers[].start_op", "int", "alive from this op"},
                                  {"buffers[].end_op", "int", "to this one"},
                                  {"buffers[].kind?", "text", "of a dump: of what operation"},
                                  {"buffers[].label?", "text", "source and operation"},
                                  {"buffers[].why?", "text", "all that is told of it"},
                                  {0}};

static const struct row way[] = {{"temp_bytes", "int", "of the way"},
                                 {"output_bytes", "int", "of the way"},
                                 {"collective_permutes", "int", "in it"},
                                 {"all_gathers", "int", "in it"},
                                 {0}};

/* ---- results */

static const struct row simulate[] = {
    {"orders?", "{}", "--orders: XLA's three orders of the step, by its estimates"},
    {"orders.least", "text", "the one that needs least: list, depth or post"},
    {"orders.list", "int", "bytes of the list schedule"},
    {"orders.depth", "int", "bytes of depth first"},
    {"orders.post", "int", "bytes of post-order"},
    {"orders.simulated", "int", "bytes of the order that is simulated"},
    {"orders.argument_bytes", "int", "in all of them"},
    {"timeline?", "{}", "--full: the step over time"},
    {"timeline.seconds", "[number]", "of each sample"},
    {"timeline.categories", "{[int]}", "bytes alive at each sample"},
    {"timeline.phases", "[{}]", "forward, loss, backward, update"},
    {"timeline.phases[].name", "text", "which"},
    {"timeline.phases[].start_seconds", "number", "when it begins"},
    {"timeline.phases[].end_seconds", "number", "when it ends"},
    {"timeline.streams", "[{}]", "compute, collectives, copies"},
    {"timeline.streams[].name", "text", "which"},
    {"timeline.streams[].busy_seconds", "number", "in all"},
    {"timeline.streams[].spans", "[[any]]", "start, end and op of each"},
    {"heap?", "&heap", "--full: the addresses of buffers"},
    {0}};

static const struct row plan[] = {
    {"status", "text", "optimal, best, limit, infeasible"},
    {"gap", "number?", "to the best that the whole space may have, as a part; null: not known"},
    {"objective", "text", "tokens_per_second, step_time, memory, devices"},
    {"budget_bytes", "int", "what a program may use, margin included"},
    {"margin", "{}", "what is kept free"},
    {"margin.kind", "text", "confident, none, bytes, part"},
    {"margin.bytes", "int", "of the plan"},
    {"margin.cost_pct", "number?", "what it costs of the objective; null: not asked"},
    {"filled_in", "{text}", "defaults that decide and that the input leaves open, by key"},
    {"considered", "number", "plans of the space"},
    {"pruned", "number", "of them neither priced nor run"},
    {"seconds", "number", "that the search took"},
    {"counts", "{int}", "of the search's parts"},
    {"exhaustive_agrees?", "bool", "--exhaustive: brute force finds the same"},
    {"plan_name?", "text", "the plan in words"},
    {"plan?", "config", "as a configuration"},
    {"prediction?", "&prediction", "of the plan, as simulate's"},
    {"alternatives?", "[{}]", "the runners-up"},
    {"alternatives[].name", "text", "in words"},
    {"alternatives[].step_seconds", "number", "of a step"},
    {"alternatives[].peak_bytes", "int", "its peak"},
    {"alternatives[].worse_by", "number", "than the plan, as a part"},
    {"alternatives[].plan", "config", "the keys that differ from defaults"},
    {"prices?", "[{}]", "--prices: what more memory would gain"},
    {"prices[].more_bytes", "int", "on each device"},
    {"prices[].step_seconds", "number", "of the best plan then"},
    {"smallest_peak_bytes?", "int", "nothing fits: the least that any plan needs"},
    {"smallest_plan?", "config", "which one"},
    {"smallest_prediction?", "&prediction", "of it"},
    {"least_budget_bytes?", "int", "a budget that would do"},
    {"least_devices?", "int?", "a number of devices that would do; null: none found"},
    {"advice?", "text?", "the change outside of the space that frees most"},
    {"verified?", "{}", "--verify: the compiler's word"},
    {"verified.by", "text", "which compiler"},
    {"verified.fits", "bool", "what was compiled last does"},
    {"verified.topology", "text", "for what"},
    {"verified.compiled_bytes", "int?", "its total"},
    {"verified.rounds", "int", "plans that were compiled"},
    {"verified.seconds", "number", "that it took"},
    {"verified.tried", "[any]", "each of them, with what it taught"},
    {"points?", "[{}]", "--full: other plans that were run, for the picture"},
    {"points[].name", "text", "in words"},
    {"points[].step_seconds", "number", "of a step"},
    {"points[].peak_bytes", "int", "its peak"},
    {0}};

static const struct row sweep[] = {
    {"budget_bytes", "int", "of the first cell"},
    {"x", "{}", "the axis across"},
    {"x.key", "text", "what varies"},
    {"x.values", "[any]", "numbers or texts"},
    {"y", "{}", "the axis up; an empty key: there is none"},
    {"y.key", "text", "what varies"},
    {"y.values", "[any]", "numbers or texts"},
    {"facets?", "[text]", "--facet: KEY=VALUE of each map"},
    {"cells", "[{}]", "those that were run"},
    {"cells[].x", "any", "value of the axis"},
    {"cells[].y", "any", "value of the axis"},
    {"cells[].facet", "int", "which map, from 0"},
    {"cells[].error?", "text", "why it cannot be; then nothing else is told"},
    {"cells[].peak_bytes?", "int", "as simulate's"},
    {"cells[].low_bytes?", "int", "of its interval"},
    {"cells[].high_bytes?", "int", "upper end of the interval of its peak"},
    {"cells[].budget_bytes?", "int", "as simulate's"},
    {"cells[].fits?", "bool", "as simulate's"},
    {"cells[].step_seconds?", "number", "as simulate's"},
    {"cells[].tokens_per_second?", "number", "as simulate's"},
    {"best", "{}?",
     "the fastest that surely fits, of the input's own sequence, model and machine where these "
     "vary; null: nothing fits"},
    {"best.x", "any", "where it is"},
    {"best.y", "any", "where it is"},
    {"best.facet", "int", "where it is"},
    {"best_of_each", "[{}]", "of each sequence, model and machine the fastest that surely fits"},
    {"best_of_each[].x", "any", "where it is"},
    {"best_of_each[].y", "any", "where it is"},
    {"best_of_each[].facet", "int", "where it is"},
    {"own", "{}?", "the cell that is the input as it stands; null: not in the grid"},
    {"own.x", "any", "where it is"},
    {"own.y", "any", "where it is"},
    {"own.facet", "int", "where it is"},
    {0}};

static const struct row advise[] = {
    {"peak_bytes", "int", "as it is"},
    {"budget_bytes", "int", "as simulate's"},
    {"step_seconds", "number", "as it is"},
    {"suffices", "text?", "the cheapest lever that is enough; null: none is, or nothing lacks"},
    {"levers", "[&lever]", "each alone"},
    {"pairs", "[&lever]", "two at once that free more than either"},
    {0}};

static const struct row compare[] = {
    {"configurations", "[{}]", "each side"},
    {"configurations[].name", "text", "file, or what was varied"},
    {"configurations[].version", "text", "of hbmsim"},
    {"configurations[].compiler", "text", "as above"},
    {"configurations[].device", "text", "as above"},
    {"configurations[].configuration", "config", "every key"},
    {"configurations[].fits", "bool", "as simulate's"},
    {"configurations[].verdict", "text", "as simulate's"},
    {"configurations[].peak_bytes", "int", "as simulate's"},
    {"configurations[].budget_bytes", "int", "as simulate's"},
    {"configurations[].categories", "{int}", "bytes at the peak"},
    {"configurations[].step_seconds", "number", "as simulate's"},
    {"configurations[].tokens_per_second", "number", "as simulate's"},
    {"configurations[].mfu", "number", "as simulate's"},
    {"keys", "[{}]", "that differ"},
    {"keys[].key", "text", "which"},
    {"keys[].values", "[text?]", "of each side"},
    {"tensors", "[{}]", "that differ at the peak"},
    {"tensors[].name", "text", "which"},
    {"tensors[].bytes", "[int]", "of each side"},
    {0}};

static const struct row validate[] = {
    {"cases", "[{}]", "each record"},
    {"cases[].id", "text", "its own"},
    {"cases[].group", "text", "its own"},
    {"cases[].measured_bytes", "int?", "peak"},
    {"cases[].predicted_bytes", "int?", "peak"},
    {"cases[].low_bytes", "int?", "of the interval"},
    {"cases[].high_bytes", "int?", "of the interval"},
    {"cases[].like?", "text", "what the records of its interval have in common"},
    {"cases[].error_pct", "number?", "of the prediction"},
    {"cases[].measured_step_seconds?", "number", "of a record of times"},
    {"cases[].predicted_step_seconds?", "number", "of a record of times"},
    {"cases[].fits_measured", "bool?", "null: not known"},
    {"cases[].fits_predicted", "bool?", "null: not asked"},
    {"cases[].verdicts_right", "int?", "of four budgets around the measured peak"},
    {"cases[].failed", "text?", "why there is no prediction"},
    {"cases[].seconds", "number", "that the prediction took"},
    {"cases[].parts", "{}", "as the compiler divides it"},
    {"cases[].parts.argument", "&part", "state and batch"},
    {"cases[].parts.output", "&part", "the new state"},
    {"cases[].parts.temp", "&part", "all between"},
    {"cases[].parts.host", "&part", "in the host's memory"},
    {"summary", "&stats", "of all"},
    {"usual_formula", "&stats", "of the formula that people use"},
    {"groups", "{&stats}", "by group"},
    {"verdicts", "{int}?", "records that only say whether it fits"},
    {"speeds", "{&stats}", "records of times, by device"},
    {"pairs?", "{}", "--pairs: records that differ in one key"},
    {"pairs.n", "int", "how many"},
    {"pairs.large", "int", "of them with a difference that counts"},
    {"pairs.sign_right", "number?", "of the large, the right way"},
    {"pairs.within_15_pct", "number?", "of the large, so near"},
    {"pairs.small_within", "number?", "of the small, as small"},
    {"pairs.rematerialised", "{number?}", "the same of steps that the compiler changed by itself"},
    {"pairs.list", "[{}]", "each"},
    {"pairs.list[].key", "text", "that differs"},
    {"pairs.list[].first", "text", "a record"},
    {"pairs.list[].second", "text", "a record"},
    {"pairs.list[].measured_bytes", "int", "difference"},
    {"pairs.list[].predicted_bytes", "int", "difference"},
    {"pairs.list[].rematerialised", "bool", "the compiler changed one by itself"},
    {0}};

static const struct row hlo[] = {
    {"file", "text", "the dump"},
    {"module", "text", "its name"},
    {"backend", "text", "whose rules: cpu, gpu, tpu-v5e, tpu-v5p, tpu-v6e"},
    {"backend_given", "bool", "--backend; else guessed"},
    {"scheduled", "bool", "its ops are in the order of execution"},
    {"schedule", "text", "compiler, or which order was made"},
    {"devices", "int", "partitions of the module"},
    {"partitioned", "bool", "after SPMD partitioning"},
    {"total_bytes", "int", "the compiler's total again"},
    {"argument_bytes", "int", "of the module"},
    {"output_bytes", "int", "of the module"},
    {"alias_bytes", "int", "of the module"},
    {"temp_bytes", "int", "of the module"},
    {"memory_analysis_temp_bytes", "int", "temp as memory_analysis() prints it"},
    {"fragmentation_bytes", "int", "lost between buffers"},
    {"liveness_bound_bytes", "int", "least that any placement needs"},
    {"host_bytes", "int", "in the host's memory"},
    {"orders?", "{}", "--order: the three orders that XLA tries"},
    {"orders.least", "text", "list, depth or post"},
    {"orders.printed_bytes", "int", "of the order in the dump"},
    {"orders.list", "&order", "list schedule"},
    {"orders.depth", "&order", "depth first"},
    {"orders.post", "&order", "post-order"},
    {"top", "[{}]", "the largest temporaries at the peak"},
    {"top[].name", "text", "of the instruction"},
    {"top[].op_name", "text?", "of the framework's op"},
    {"top[].opcode", "text", "of the instruction"},
    {"top[].shape", "text", "its type"},
    {"top[].bytes", "int", "of all like it"},
    {"top[].count", "int", "how many are alike"},
    {"top[].source", "{}?", "where it is written"},
    {"top[].source.file", "text", "of the program"},
    {"top[].source.line", "int", "of it"},
    {"findings", "[{}]", "what costs memory and need not"},
    {"findings[].kind", "text", "which"},
    {"findings[].ops", "[text]", "some of them"},
    {"findings[].count", "int", "how many"},
    {"findings[].bytes", "int", "that its removal frees"},
    {"findings[].held_bytes", "int", "that it holds"},
    {"findings[].total_without_bytes", "int", "of the program without it"},
    {"findings[].what", "text", "in a sentence"},
    {"findings[].advice", "text", "what would remove it"},
    {"findings[].forecasts?", "[{}]", "of halos before partitioning: what each way would take"},
    {"findings[].forecasts[].direction", "text", "which way values move"},
    {"findings[].forecasts[].shape", "text", "of the whole array"},
    {"findings[].forecasts[].padding", "text", "that the op asks for"},
    {"findings[].forecasts[].parts", "[int]", "shards of each dimension"},
    {"findings[].forecasts[].count", "int", "how many are alike"},
    {"findings[].forecasts[].broadcasts", "int", "in the partitioned form"},
    {"findings[].forecasts[].pads", "int", "in the partitioned form"},
    {"findings[].forecasts[].dynamic_slices", "int", "in the partitioned form"},
    {"findings[].forecasts[].selects", "int", "in the partitioned form"},
    {"findings[].forecasts[].fused", "&way", "where they are fused"},
    {"findings[].forecasts[].unfused", "&way", "where they are not"},
    {"findings[].forecasts[].permuted", "&way", "by permutes alone"},
    {"findings_packed", "bool", "findings are packed again, not only counted by lives"},
    {"curve", "[{}]", "bytes alive over the ops"},
    {"curve[].op", "int", "its place"},
    {"curve[].live_bytes", "int", "alive there"},
    {"peak_bytes?", "int", "--full: as total_bytes, for pictures"},
    {"heap?", "&heap", "--full: the addresses of buffers"},
    {0}};

static const struct row explain[] = {
    {"known", "bool", "something about memory is in it"},
    {"lines?", "int", "of the log"},
    {"what?", "text", "what happened"},
    {"cause?", "text", "one of a few words"},
    {"why?", "text", "in sentences"},
    {"notes?", "[text]", "what else it says"},
    {"framework?", "text?", "jax, maxtext, torch ..."},
    {"wanted_bytes?", "int?", "what was asked for"},
    {"available_bytes?", "int?", "what there was"},
    {"over_bytes?", "int?", "the difference"},
    {"capacity_bytes?", "int?", "of the device"},
    {"state_bytes?", "int?", "held between steps"},
    {"transient_bytes?", "int?", "on top at the peak"},
    {"parts?", "[{}]", "what it is made of"},
    {"parts[].name", "text", "which"},
    {"parts[].bytes", "int?", "of it"},
    {"parts[].inside", "bool", "a part of the one before"},
    {"top?", "[{}]", "the largest buffers that the log lists"},
    {"top[].what", "text", "what it is, as a word"},
    {"top[].op_name", "text?", "the framework's op"},
    {"top[].shape", "text?", "its type"},
    {"top[].source", "text?", "file and line"},
    {"top[].bytes", "int?", "of all like it"},
    {"top[].count", "int?", "how many"},
    {"top[].padding_bytes", "int?", "of them padding"},
    {"knobs?", "[{}]", "what helps, the best first"},
    {"knobs[].knob", "text", "as a word"},
    {"knobs[].what", "text", "in a sentence"},
    {"knobs[].set", "text?", "KEY=VALUE for --set"},
    {"knobs[].words", "text?", "in the framework's words"},
    {"knobs[].frees_bytes", "int?", "at most"},
    {"commands?", "[text]", "to try it with hbmsim"},
    {"messages?", "[{}]", "what was found"},
    {"messages[].kind", "text", "which form"},
    {"messages[].line", "int?", "where"},
    {"messages[].times", "int?", "how often"},
    {"messages[].name", "text?", "of what it speaks"},
    {"messages[].facts", "{int?}", "its figures"},
    {"devices?", "[{}]", "of a memory snapshot of PyTorch"},
    {"devices[].device", "int", "from 0"},
    {"devices[].reserved_bytes", "int", "taken from the device"},
    {"devices[].allocated_bytes", "int", "in use"},
    {"devices[].active_bytes", "int", "with what waits for another stream"},
    {"devices[].requested_bytes", "int", "before rounding"},
    {"devices[].stuck_bytes", "int", "free within segments in use"},
    {"devices[].idle_bytes", "int", "of segments without a block in use"},
    {"devices[].events", "int", "of its history"},
    {"devices[].peak_bytes", "int", "most in use"},
    {"devices[].peak_event", "int", "when"},
    {"devices[].ooms", "int", "refusals"},
    {"devices[].oom_bytes", "int", "asked for at the last"},
    {"devices[].at_peak", "[{}]", "by line of code"},
    {"devices[].at_peak[].where", "text", "file, line, function"},
    {"devices[].at_peak[].bytes", "int", "in use"},
    {"devices[].at_peak[].largest_bytes", "int", "the largest block"},
    {"devices[].at_peak[].blocks", "int", "how many"},
    {"devices[].pools", "[{}]", "by stream and size of blocks"},
    {"devices[].pools[].stream", "int", "which"},
    {"devices[].pools[].small", "bool", "of small blocks"},
    {"devices[].pools[].segments", "int", "how many"},
    {"devices[].pools[].reserved_bytes", "int", "as above"},
    {"devices[].pools[].active_bytes", "int", "as above"},
    {"devices[].pools[].stuck_bytes", "int", "as above"},
    {"devices[].pools[].idle_bytes", "int", "as above"},
    {"devices[].pools[].largest_free_bytes", "int", "the largest hole"},
    {"devices[].fragmented_segments", "[{}]", "with most free memory within"},
    {"devices[].fragmented_segments[].address", "int", "on the device"},
    {"devices[].fragmented_segments[].stream", "int", "which"},
    {"devices[].fragmented_segments[].total_bytes", "int", "its size"},
    {"devices[].fragmented_segments[].free_bytes", "int", "of it"},
    {"devices[].fragmented_segments[].holes", "int", "how many"},
    {"devices[].fragmented_segments[].largest_free_bytes", "int", "the largest hole"},
    {"devices[].replays", "[{}]", "the same requests with other settings"},
    {"devices[].replays[].settings", "text", "of the allocator"},
    {"devices[].replays[].reserved_bytes", "int", "at most"},
    {0}};

static const struct row import[] = {{"imported", "text", "what the file is"},
                                    {"understood", "[text]", "keys of it"},
                                    {"assumed", "[text]", "sentences"},
                                    {"missing", "[text]", "what could not be expressed"},
                                    {0}};

static const struct row models[] = {{"models", "[{}]", "cards of the zoo, or the file"},
                                    {"models[].name", "text", "its own"},
                                    {"models[].parameters", "int", "all"},
                                    {"models[].active_parameters", "int", "that a token passes"},
                                    {"models[].layers", "int", "of all blocks"},
                                    {"models[].d_model", "int", "width"},
                                    {"models[].vocab", "int", "words"},
                                    {"models[].experts", "int", "of a layer; 0: none"},
                                    {"models[].top_k", "int", "of them for a token"},
                                    {"models[].parts", "{int}", "parameters by kind"},
                                    {0}};

static const struct row devices[] = {
    {"devices", "[{}]", "profiles"},
    {"devices[].name", "text", "its own"},
    {"devices[].title", "text", "the product"},
    {"devices[].vendor", "text", "whose"},
    {"devices[].kind", "text", "tpu, gpu, cpu"},
    {"devices[].usable_bytes", "int", "memory less reserve"},
    {"devices[].measured_date", "text?", "of calibrate"},
    {"devices[].values", "{}", "each number of the profile"},
    {"devices[].values.*", "{}", "by its key"},
    {"devices[].values.*.value", "any", "number, word or curve"},
    {"devices[].values.*.source", "text?", "where it is read or measured"},
    {"devices[].values.*.note", "text?", "how it is meant"},
    {0}};

static const struct row verify[] = {{"fits", "bool", "what was compiled does"},
                                    {"by", "text", "which compiler"},
                                    {"topology", "text", "for what"},
                                    {"compiled_bytes", "int?", "its total"},
                                    {"predicted_bytes", "int?", "as simulate's peak_bytes"},
                                    {"budget_bytes", "int?", "as simulate's"},
                                    {"argument_bytes", "int?", "compiled; null: not told"},
                                    {"output_bytes", "int?", "compiled"},
                                    {"alias_bytes", "int?", "compiled"},
                                    {"temp_bytes", "int?", "compiled"},
                                    {"host_bytes", "int?", "compiled"},
                                    {"error_pct", "number", "of the prediction"},
                                    {"versions", "{text}", "of what compiled it"},
                                    {"seconds", "number", "that it took"},
                                    {0}};

/* Not with the whole head: its configuration is `config`. */
static const struct row record[] = {
    {"id", "text", "a name for the record"},
    {"source", "text", "who measured"},
    {"group?", "text", "for statistics"},
    {"versions", "{text}", "of what ran"},
    {"name", "text", "of the model"},
    {"version", "text", "of hbmsim"},
    {"compiler", "text", "as above"},
    {"device", "text", "as above"},
    {"config", "config", "what ran; what is absent is the default"},
    {"measured", "{}", "figures; null: not told"},
    {"measured.kind", "text", "xla_total, device_peak, torch_allocated, ..."},
    {"measured.argument_bytes", "int?", "as the compiler prints it"},
    {"measured.output_bytes", "int?", "as the compiler prints it"},
    {"measured.alias_bytes", "int?", "as the compiler prints it"},
    {"measured.temp_bytes", "int?", "as the compiler prints it"},
    {"measured.host_bytes", "int?", "as the compiler prints it"},
    {"measured.peak_bytes", "int?", "what is compared"},
    {"measured.static_bytes?", "int", "held between steps"},
    {"measured.reserved_bytes?", "int", "torch: taken from the device"},
    {"measured.active_bytes?", "int", "torch: with what waits for a stream"},
    {"measured.fits", "bool?", "whether it ran"},
    {"measured.step_seconds", "number?", "of a step"},
    {"note", "text", "of it"},
    {0}};

/* A profile, whose schema is that of the device's own table. */
static const struct row calibrate[] = {
    {"hbmsim_device", "int", "1: the format"},
    {"name", "text", "its own"},
    {"title", "text", "the product"},
    {"vendor", "text", "whose"},
    {"kind", "text", "tpu, gpu, cpu"},
    {"measured?", "{text}", "when, with which driver, clocks, spread, power"},
    {"sources?", "{text}", "named by the numbers"},
    {"*", "[any]", "value, source, note; hbmsim devices NAME tells each key"},
    {0}};

/* The plot command's --layout is a drawing, no result. */
static const struct {
    const char *name;
    const struct row *rows;
    const struct row *base; /* further rows; null: none */
    bool headed;
} results[] = {{"simulate", prediction, simulate, true},
               {"plan", plan, NULL, true},
               {"sweep", sweep, NULL, true},
               {"advise", advise, NULL, true},
               {"compare", compare, NULL, true},
               {"validate", validate, NULL, true},
               {"hlo", hlo, NULL, true},
               {"explain", explain, NULL, true},
               {"import", import, NULL, true},
               {"models", models, NULL, true},
               {"devices", devices, NULL, true},
               {"verify", verify, NULL, true},
               {"record", record, NULL, false},
               {"calibrate", calibrate, NULL, false}};
enum { RESULTS = sizeof results / sizeof results[0] };

static const struct {
    const char *name, *title;
    const struct row *rows;
} shared[] = {{"prediction", "&prediction", prediction},
              {"lever", "&lever", lever},
              {"stats", "&stats", stats},
              {"part", "&part", part},
              {"order", "&order", order},
              {"heap", "&heap", heap},
              {"way", "&way", way}};
enum { SHARED = sizeof shared / sizeof shared[0] };

/* ---- schema */

/* Rows of one object: those right below a prefix ("", "peak.", "top[]."). */
struct level {
    const struct row *rows[3]; /* tables; null: no more */
    const char *prefix;
};

static void put_type(struct hb_json *j, const struct level *l, const char *path, const char *type);

/* The name right below the prefix, or null; maybe: it may be absent. */
static const char *own_name(struct hb_arena *arena, const struct level *l, const struct row *r,
                            bool *maybe)
{
    if (!hb_str_starts(r->path, l->prefix))
        return NULL;
    const char *rest = r->path + strlen(l->prefix);
    size_t len = strlen(rest);
    if (!len || strpbrk(rest, ".[*"))
        return NULL;
    *maybe = rest[len - 1] == '?';
    return hb_arena_strndup(arena, rest, *maybe ? len - 1 : len);
}

static void put_members(struct hb_json *j, const struct level *l)
{
    hb_json_key(j, "properties");
    hb_json_object(j);
    for (int t = 0; t < 3 && l->rows[t]; t++)
        for (const struct row *r = l->rows[t]; r->path; r++) {
            bool maybe;
            const char *name = own_name(j->out->arena, l, r, &maybe);
            if (!name)
                continue;
            hb_json_key(j, name);
            hb_json_object(j);
            hb_json_put_text(j, "description", r->doc);
            put_type(j, l, hb_arena_printf(j->out->arena, "%s%s", l->prefix, name), r->type);
            hb_json_object_end(j);
        }
    hb_json_object_end(j);
}

static void put_required(struct hb_json *j, const struct level *l)
{
    hb_json_key(j, "required");
    hb_json_array(j);
    for (int t = 0; t < 3 && l->rows[t]; t++)
        for (const struct row *r = l->rows[t]; r->path; r++) {
            bool maybe;
            const char *name = own_name(j->out->arena, l, r, &maybe);
            if (name && !maybe)
                hb_json_text(j, name);
        }
    hb_json_array_end(j);
}

static const struct row *find_row(const struct level *l, const char *path)
{
    for (int t = 0; t < 3 && l->rows[t]; t++)
        for (const struct row *r = l->rows[t]; r->path; r++)
            if (hb_str_same(r->path, path))
                return r;
    return NULL;
}

static void put_object(struct hb_json *j, const struct level *l)
{
    struct hb_arena *arena = j->out->arena;
    const struct row *any = find_row(l, hb_arena_printf(arena, "%s*", l->prefix));
    hb_json_put_text(j, "type", "object");
    if (any) {
        hb_json_key(j, "additionalProperties");
        hb_json_object(j);
        put_type(j, l, any->path, any->type);
        hb_json_object_end(j);
        return;
    }
    put_members(j, l);
    put_required(j, l);
    hb_json_put_bool(j, "additionalProperties", false);
}

/* Members of an open object that say one of the types without '?'. */
static void put_plain(struct hb_json *j, const struct level *l, const char *path, const char *type)
{
    static const struct {
        const char *ours, *theirs;
    } words[] = {{"bool", "boolean"}, {"int", "integer"}, {"number", "number"}, {"text", "string"}};
    struct hb_arena *arena = j->out->arena;
    size_t len = strlen(type);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (hb_str_same(type, words[i].ours))
            hb_json_put_text(j, "type", words[i].theirs);
    if (hb_str_same(type, "config"))
        hb_json_put_text(j, "$ref", "#/$defs/configuration");
    if (type[0] == '&')
        hb_json_put_text(j, "$ref", hb_arena_printf(arena, "#/$defs/%s", type + 1));
    if (hb_str_same(type, "{}")) {
        struct level inner = *l;
        inner.prefix = hb_arena_printf(arena, "%s.", path);
        put_object(j, &inner);
    } else if (type[0] == '{' || type[0] == '[') {
        bool list = type[0] == '[';
        hb_json_put_text(j, "type", list ? "array" : "object");
        hb_json_key(j, list ? "items" : "additionalProperties");
        hb_json_object(j);
        put_type(j, l, hb_arena_printf(arena, "%s[]", path),
                 hb_arena_strndup(arena, type + 1, len - 2));
        hb_json_object_end(j);
    }
}

static void put_type(struct hb_json *j, const struct level *l, const char *path, const char *type)
{
    size_t len = strlen(type);
    if (type[len - 1] != '?') {
        put_plain(j, l, path, type);
        return;
    }
    hb_json_key(j, "anyOf");
    hb_json_array(j);
    hb_json_object(j);
    hb_json_put_text(j, "type", "null");
    hb_json_object_end(j);
    hb_json_object(j);
    put_plain(j, l, path, hb_arena_strndup(j->out->arena, type, len - 1));
    hb_json_object_end(j);
    hb_json_array_end(j);
}

static struct level level_of(int result)
{
    struct level l = {{NULL}, ""};
    int count = 0;
    if (results[result].headed)
        l.rows[count++] = head;
    l.rows[count++] = results[result].rows;
    if (results[result].base)
        l.rows[count] = results[result].base;
    return l;
}

static void put_definitions(struct hb_json *j)
{
    hb_json_key(j, "$defs");
    hb_json_object(j);
    for (int i = 0; i < RESULTS; i++) {
        struct level l = level_of(i);
        hb_json_key(j, hb_arena_printf(j->out->arena, "result.%s", results[i].name));
        hb_json_object(j);
        if (results[i].rows == calibrate)
            hb_device_json_schema(j);
        else
            put_object(j, &l);
        hb_json_object_end(j);
    }
    for (int i = 0; i < SHARED; i++) {
        struct level l = {{shared[i].rows}, ""};
        hb_json_key(j, shared[i].name);
        hb_json_object(j);
        put_object(j, &l);
        hb_json_object_end(j);
    }
    hb_json_key(j, "configuration");
    hb_json_object(j);
    hb_schema_json_root(j);
    hb_json_object_end(j);
    hb_schema_json_sections(j);
    hb_json_object_end(j);
}

void hb_json_keys_schema(struct hb_json *j)
{
    hb_json_object(j);
    hb_json_put_text(j, "$schema", "https://json-schema.org/draft/2020-12/schema");
    hb_json_put_text(j, "title", "results of hbmsim as JSON");
    hb_json_key(j, "anyOf");
    hb_json_array(j);
    for (int i = 0; i < RESULTS; i++) {
        hb_json_object(j);
        hb_json_put_text(j, "$ref",
                         hb_arena_printf(j->out->arena, "#/$defs/result.%s", results[i].name));
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
    put_definitions(j);
    hb_json_object_end(j);
}

/* ---- words */

enum { PATH_COLUMNS = 42, TYPE_COLUMNS = 12 };

static void print_rows(FILE *out, const char *title, const struct row *rows)
{
    fprintf(out, "%s\n", title);
    for (const struct row *r = rows; r && r->path; r++)
        fprintf(out, "  %-*s %-*s %s\n", PATH_COLUMNS, r->path, TYPE_COLUMNS, r->type, r->doc);
    fputc('\n', out);
}

bool hb_json_keys_text(FILE *out, const char *kind)
{
    bool found = !kind;
    for (int i = 0; i < RESULTS; i++)
        found |= kind && hb_str_same(kind, results[i].name);
    if (!found)
        return false;
    print_rows(out, "each result but a record", head);
    for (int i = 0; i < RESULTS; i++) {
        if (kind && !hb_str_same(kind, results[i].name))
            continue;
        print_rows(out, results[i].name, results[i].rows);
        if (results[i].base)
            print_rows(out, "simulate, where it is asked for", results[i].base);
    }
    for (int i = 1; i < SHARED; i++) /* the first is simulate */
        if (!kind)
            print_rows(out, shared[i].title, shared[i].rows);
    return true;
}
