/* sim/ir/lower for XLA:TPU: habits each by the measured pair that shows it (ids of lab records
 * without their "lab-tpu-"). A buffer's life is read off the positions of the ops that write and
 * read it. */
#include "tests/unit/lowered.h"

static const char experts[] = "model:\n"
                              "  d_model: 4096\n"
                              "  vocab: 32000\n"
                              "  blocks:\n"
                              "    - name: block\n"
                              "      repeat: 4\n"
                              "      attention: {heads: 32, kv_heads: 8, head_dim: 128}\n"
                              "      moe: {experts: 8, top_k: 2, d_ff: 1408, dispatch: einsum}\n"
                              "batch: {global: 64, seq: 4096}\n"
                              "mesh: {fsdp: 64}\n"
                              "hardware: {device: tpu-v5p}\n"
                              "compiler: xla-tpu\n";

#define DENSE(...)   lower_text(TPU_DENSE, (const char *const[]){__VA_ARGS__, NULL})
#define EXPERTS(...) lower_text(experts, (const char *const[]){__VA_ARGS__, NULL})
#define SAME         "batch.accumulate=1" /* where nothing is changed */
#define ATTENTION    "model.blocks[0].attention."

/* 70B/base,s2k,logits_dot=bf16: the head's whole gradient is bf16; rnd/016: f32 logits and a bf16
 * gradient of theirs. */
static void a_narrow_product_has_narrow_gradients(void **state)
{
    (void)state;
    struct low wide = DENSE("mesh.fsdp=2", SAME);
    struct low narrow = DENSE("mesh.fsdp=2", "loss.dot=bf16");
    const char *whole = "head, gradient before its sum";
    assert_int_equal(buf_of(&wide, whole)->dtype, HB_DT_F32);
    assert_int_equal(buf_of(&narrow, whole)->dtype, HB_DT_BF16);
    assert_int_equal(find(&wide, "gradient of the logits"), HB_NONE); /* in the logits' place */
    assert_int_equal(buf_of(&narrow, "gradient of the logits")->dtype, HB_DT_BF16);
}

/* opt/base and rnd/079 against tinyS/base. */
static void one_sequence_scatters(void **state)
{
    (void)state;
    struct low one = DENSE("batch.global=1"), many = DENSE(SAME);
    assert_int_equal(buf_of(&one, "gradient of the logits")->bytes, 4LL * 2048 * 32000);
    assert_int_equal(find(&many, "gradient of the logits"), HB_NONE);
    struct low onehot = DENSE("batch.global=1", "loss.onehot=true");
    assert_int_equal(find(&onehot, "gradient of the logits"), HB_NONE);
}

/* rnd/006: bf16 parameters; and with remat_outer=False. */
static void an_outer_block_has_slices(void **state)
{
    (void)state;
    const char *slice = "w_up, slice of an outer block";
    struct low cast = DENSE("stack.form=nested");
    struct low plain = DENSE("stack.form=nested", "precision.params=bf16");
    struct low inner = DENSE("stack.form=nested", "precision.params=bf16", "remat.outer=false");
    struct low scan = DENSE("precision.params=bf16");
    assert_int_equal(buf_of(&cast, slice)->bytes, 2LL * 2 * 1024 * 2816);
    assert_int_equal(buf_of(&plain, slice)->bytes, 2LL * 2 * 1024 * 2816);
    assert_int_equal(buf_of(&inner, slice)->bytes, 2LL * 2 * 1024 * 2816);
    assert_int_equal(find(&scan, "slice of an outer block"), HB_NONE);
}

/* gate/v5e,f4, f4,d8k,s16k against f4,b4,P8 and gate/v6e,f4; ring/f4, a slice of its own. */
static void short_rings_of_one_sequence_wait(void **state)
{
    (void)state;
    const char *mesh = "mesh.fsdp=4", *rows = "batch.seq=4096";
    const char *backward = "gradient through block.w_down", *other = "the ring's other direction";
    struct low one = DENSE(mesh, "batch.seq=16384", "batch.global=4"),
               four = DENSE(mesh, rows, "batch.global=16");
    assert_true(lives_at(&one, "logits", backward));
    assert_false(lives_at(&four, "logits", backward));
    assert_int_equal(bytes_of(&one, other), 4LL * 256 * 32000);
    assert_int_equal(bytes_of(&four, other), 3 * 4LL * 256 * 32000);
    struct low v6e = DENSE(mesh, rows, "batch.global=4", "hardware.device=tpu-v6e");
    assert_false(lives_at(&v6e, "logits", backward));
    assert_int_equal(find(&v6e, other), HB_NONE);
    struct low slice = DENSE(mesh, rows, "batch.global=4");
    assert_int_equal(find(&slice, other), HB_NONE);
}

/* batch/d8k,f16,b1 with ce=onehot; ring/f16,d2k, rows/f8,b128 with logits_dot=bf16; 8B,f16,a4 and
 * accum/1B,dp8,a4; rnd/013 untied with ema=host and adamw; rnd/077 with attn=naive. */
static void what_logits_wait_for(void **state)
{
    (void)state;
    const char *backward = "gradient through block.w_down", *ring = "mesh.fsdp=16";
    const char *one = "batch.global=16", *rows = "batch.seq=4096",
               *narrow = "gradient of the logits";
    struct low gather = DENSE(ring, one, rows);
    assert_true(lives_at(&gather, narrow, backward));
    struct low cast = DENSE(ring, one, rows, "loss.dot=bf16");
    assert_true(lives_at(&cast, "logits before the cast", "softmax cross-entropy"));
    cast = DENSE(ring, "batch.global=32", rows, "loss.dot=bf16");
    assert_int_not_equal(find(&cast, "logits before the cast"), HB_NONE);
    struct low micro = DENSE(ring, "batch.global=32", rows, "batch.accumulate=2");
    assert_false(lives_at(&micro, narrow, backward));
    struct low few_tokens = DENSE("batch.accumulate=8");
    assert_false(lives_at(&few_tokens, "logits", backward));
    const char *away = "optimizer.ema=pinned_host", *muon = "optimizer.name=muon";
    struct low whole = DENSE(away, muon, "optimizer.moments=[f32]");
    assert_false(lives_at(&whole, "logits", backward));
    const char *tensor = "mesh.tensor=2", *two = "mesh.fsdp=4";
    micro = DENSE(tensor, two, "batch.accumulate=2", rows, "loss.onehot=true"); /* rnd/028 */
    assert_true(lives_at(&micro, "logits", backward));
    const char *few[] = {"batch.global=1", "batch.seq=512"};
    struct low sgd = DENSE(few[0], few[1], "optimizer.name=sgd", "optimizer.moments=[]");
    assert_true(lives_at(&sgd, "gradient of the logits", backward));
}

/* rnd/075 with activation_constraints=false; ring/f16t4,spres: its gradient is gathered. */
static void nobody_splits_the_residual_unasked(void **state)
{
    (void)state;
    const char *tensor = "mesh.tensor=4", *over = "sharding.residual_over_tensor=true";
    struct low split = DENSE(tensor, over);
    struct low whole = DENSE(tensor, over, "sharding.activation_constraints=false");
    const char *stack = "layer input, saved";
    assert_int_equal(4 * bytes_of(&split, stack), bytes_of(&whole, stack));
    const char *gathered = "mlp output, gradient gathered";
    assert_true(lives_at(&split, gathered, "gradient through block.w_down"));
    assert_int_equal(find(&whole, gathered), HB_NONE);
}

/* bwd/attn=naive,remat=dots. */
static void kept_scores_are_read_in_their_stack(void **state)
{
    (void)state;
    struct low l = DENSE(ATTENTION "kernel=naive", "remat.policy=dots");
    assert_true(lives_at(&l, "attention scores, saved", "backward of softmax"));
    for (uint32_t i = find_op(&l, "gradient through the head"); i < l.p.op_count; i++)
        assert_null(strstr(l.p.ops[i].name, "attention scores out of its stack"));
}

/* 8B-L16,f64,b3 (rows of 64 columns in twice their bytes), 70B/base on v5e. */
static void rows_are_exchanged_between_copies(void **state)
{
    (void)state;
    const char *mesh = "mesh.fsdp=64", *batch = "batch.global=64", *rows = "own columns of all";
    struct low v5p = DENSE(mesh, batch), v5e = DENSE(mesh, batch, "hardware.device=tpu-v5e");
    assert_int_equal(buf_of(&v5p, rows)->bytes, 8 * buf_of(&v5p, rows)->plain_bytes);
    assert_int_equal(buf_of(&v5e, rows)->bytes, 8 * buf_of(&v5e, rows)->plain_bytes);
    assert_true(find_op(&v5p, "exchange embedding rows") < find_op(&v5p, "cast block.w_up"));
}

/* Sixteen sequences of 2,048, two layers of 2,048, compiled for v5e: with so many words all rows
 * come to each device (bf16[16,2048,2048]), with fewer it scatters its own into a whole table. */
static void rows_or_the_table_are_gathered(void **state)
{
    (void)state;
    static const struct {
        const char *data, *fsdp, *words;
        bool rows;
    } pairs[] = {{"mesh.data=2", "mesh.fsdp=8", "model.vocab=31232", true},
                 {"mesh.data=2", "mesh.fsdp=8", "model.vocab=30848", false},
                 {"mesh.data=4", "mesh.fsdp=4", "model.vocab=28288", true},
                 {"mesh.data=4", "mesh.fsdp=4", "model.vocab=27392", false},
                 {"mesh.data=8", "mesh.fsdp=2", "model.vocab=23936", true},
                 {"mesh.data=8", "mesh.fsdp=2", "model.vocab=22528", false}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct low l = DENSE("hardware.device=tpu-v5e", "batch.global=16", pairs[i].data,
                             pairs[i].fsdp, pairs[i].words, "model.d_model=2048");
        uint32_t rows = find(&l, "gradient of all embedding rows");
        assert_int_equal(rows != HB_NONE, pairs[i].rows);
        int64_t wide = pairs[i].rows ? 2048 / l.spec.mesh[HB_AX_FSDP] : 2048;
        const struct hb_buf *table = buf_of(&l, "embedding, zeros for its gradient");
        assert_int_equal(table->plain_bytes, 2 * wide * l.spec.model.vocab);
        if (pairs[i].rows)
            assert_int_equal(l.p.bufs[rows].plain_bytes, 2LL * 16 * 2048 * 2048);
    }
}

/* moeT/capacity=2.0: the gradient of the combine weights lies in their place. moeFG/base, olmoe: it
 * is made last, that of the outputs first; nothing flows back into the mask. */
static void combine_weights_lend_their_place(void **state)
{
    (void)state;
    const char *gradient = "moe combine weights, gradient";
    struct low whole = EXPERTS("mesh.fsdp=1"), split = EXPERTS(SAME);
    assert_int_equal(find(&whole, gradient), HB_NONE);
    assert_true(find(&split, gradient) != HB_NONE);
    uint32_t first = find_op(&split, "backward of moe output");
    uint32_t last = find_op(&split, "block.moe combine weights, gradient of");
    assert_true(first < find_op(&split, "backward of expert activation"));
    assert_true(last > find_op(&split, "gradient through block.e_gate"));
    assert_int_equal(find(&split, "moe dispatch mask, gradient"), HB_NONE);
}

/* moeFG/base: e_down's product is in the pass that makes the gradients of gate and up. */
static void a_product_is_made_inside_its_reader(void **state)
{
    (void)state;
    struct low l = EXPERTS(SAME);
    const struct hb_op *op = &l.p.ops[find_op(&l, "backward of expert activation")];
    bool reads = false;
    for (uint32_t i = 0; i < op->read_count; i++)
        reads =
            reads || !strcmp(l.p.bufs[l.p.refs[op->refs_at + i]].name, "block.e_down, gathered");
    assert_true(reads);
    assert_true(op->flops > l.p.ops[find_op(&l, "expert up")].flops);
}

/* bwd/mlp=moe_einsum,remat=none: bf16[4,8,2048,2,640] and bf16[4,8,2048,2,8]. */
static void choices_are_kept_with_all_else(void **state)
{
    (void)state;
    struct low none = EXPERTS(SAME, "remat.policy=none"), full = EXPERTS(SAME);
    const struct hb_buf *expert = buf_of(&none, "experts of the choices, saved for backward");
    const struct hb_buf *place = buf_of(&none, "places of the choices, saved for backward");
    const struct hb_buf *weights = buf_of(&none, "moe combine weights, saved for backward");
    assert_int_equal(expert->rank, weights->rank);
    assert_int_equal(expert->dim[expert->rank - 1], weights->dim[weights->rank - 2]);
    assert_int_equal(place->dim[place->rank - 1], weights->dim[weights->rank - 1]);
    assert_int_equal(place->dim[place->rank - 2], 2);
    assert_int_equal(find(&full, "places of the choices"), HB_NONE);
}

/* ring/f8t2,opt=adafactor against ring/f8t2. */
static void slow_updates_keep_logits(void **state)
{
    (void)state;
    const char *mesh = "mesh.fsdp=8", *tensor = "mesh.tensor=2", *batch = "batch.global=64";
    const char *backward = "gradient through block.w_down", *adafactor = "optimizer.name=adafactor";
    struct low plain = DENSE(mesh, tensor, batch);
    struct low slow = DENSE(mesh, tensor, batch, adafactor, "optimizer.moments=[]");
    assert_false(lives_at(&plain, "gradient of the logits", backward));
    assert_true(lives_at(&slow, "gradient of the logits", backward));
    assert_int_equal(buf_of(&slow, "gradient of the logits")->dtype, HB_DT_BF16);
}

/* 8B,v5e8x8,f64: of two sequences the head's whole gradient waits and no logits; with 32000 words
 * its sum, made at once; of one the logits, too. */
static void what_runs_beside_products_waits(void **state)
{
    (void)state;
#define BESIDE(...)                                                                                \
    DENSE("mesh={fsdp: 64}", "model.d_model=4096", "hardware={device: tpu-v5e, count: 64}",        \
          "model.blocks[0].attention={heads: 32, kv_heads: 8, head_dim: 128, kernel: flash}",      \
          "model.blocks[0].mlp.d_ff=14336", "model.blocks[0].repeat=32", __VA_ARGS__)
    const char *op = "gradient through block.w_down", *whole = "head, gradient before its sum";
    const char *words = "model.vocab=128256";
    struct low two = BESIDE(words, "batch.global=128"), one = BESIDE(words, "batch.global=64");
    assert_true(lives_at(&two, whole, op) && lives_at(&one, whole, op));
    struct low data = BESIDE(words, "batch.global=128", "mesh={data: 2, fsdp: 32}");
    assert_true(lives_at(&one, "logits", op));
    assert_false(lives_at(&two, "logits", op) || lives_at(&data, "logits", op));
    assert_true(find_op(&two, "gradient of the head") < find_op(&two, "gradient through the head"));
}

/* Whether gate's gradient has a place of its own in the layers' backward pass. */
static bool is_gate_apart(const struct low *l)
{
    return find(l, "mlp gate, gradient") != HB_NONE;
}

/* 8 layers of 2048 and 8192, data 8 beside fsdp 8, 4,096 tokens: four bf16[2,2048,8192] on v5p and
 * v6e, with 2,048 tokens and on v5e three. */
static void gates_gradient_lies_apart(void **state)
{
    (void)state;
    static const char mesh[] = "mesh={data: 8, fsdp: 8}", count[] = "hardware.count=64";
    static const char many[] = "batch={global: 128, seq: 2048}";
    static const char d[] = "model.d_model=2048", few[] = "batch={global: 64, seq: 2048}";
    struct low v5p = DENSE(mesh, count, d, many), some = DENSE(mesh, count, d, few);
    struct low v6e = DENSE(mesh, count, d, many, "hardware.device=tpu-v6e");
    struct low v5e = DENSE(mesh, count, d, many, "hardware.device=tpu-v5e");
    assert_true(is_gate_apart(&v5p) && is_gate_apart(&v6e));
    assert_false(is_gate_apart(&some) || is_gate_apart(&v5e));
}

/* mixtral/base: casts of gate and up, [.., 64, ..] with the 64 along the lanes, take twice their
 * bytes, w_down's not. */
static void shards_along_the_lanes_are_padded(void **state)
{
    (void)state;
    struct low moe = EXPERTS(SAME);
    const struct hb_buf *gate = buf_of(&moe, "e_gate, cast once");
    const struct hb_buf *down = buf_of(&moe, "e_down, cast once");
    assert_int_equal(gate->bytes, 2 * gate->plain_bytes);
    assert_int_equal(down->bytes, down->plain_bytes);
    struct low one = DENSE("mesh.fsdp=64", "batch.global=64", "batch.seq=512");
    const char *cast = "w_down, cast once";
    assert_int_equal(buf_of(&one, cast)->bytes, buf_of(&one, cast)->plain_bytes);
}

/* ring/f8 with 4096, 8192 and 16384 tokens against two sequences of 2048; 8B/base: two accumulators
 * from the start, 1B/base: none at the loss. */
static void rings_of_one_sequence_wait(void **state)
{
    (void)state;
    const char *mesh = "mesh.fsdp=8", *backward = "gradient through block.w_down";
    const char *loss = "softmax cross-entropy", *other = "gradient of the ring's other direction";
    struct low one = DENSE(mesh, "batch.seq=8192");
    assert_true(lives_at(&one, "gradient of the logits", backward));
    assert_true(lives_at(&one, other, loss));
    struct low two = DENSE(mesh, "batch.global=16", "batch.seq=4096");
    assert_false(lives_at(&two, "gradient of the logits", backward));
    assert_false(lives_at(&two, other, loss));
}

/* The list (8B/base: bf16 gradient), depth-first (8B/seq=8192: f32 logits, their gradient's ring is
 * done with), post-order (1B/batch=8: both, accumulators after them); with more layers, which keep
 * more, fewer tokens. 8B,f16,muon,clip: momenta copied first. */
static void the_sequence_says_what_waits(void **state)
{
    (void)state;
    const char *backward = "gradient through block.w_down", *narrow = "gradient of the logits";
    const char *other = "gradient of the ring's other direction", *seq = "batch.seq=8192";
    struct low list = DENSE("mesh.fsdp=8", seq);
    struct low depth = DENSE("mesh.fsdp=8", seq, "model.blocks[0].repeat=32");
    struct low post = DENSE("mesh.fsdp=16", "batch.global=16", "batch.seq=1024");
    assert_false(lives_at(&list, "logits", backward));
    assert_true(lives_at(&list, narrow, backward));
    assert_true(lives_at(&list, other, "mlp activation"));
    assert_true(lives_at(&depth, "logits", backward));
    assert_false(lives_at(&depth, narrow, backward));
    assert_false(lives_at(&depth, other, "mlp activation"));
    assert_true(lives_at(&post, "logits", backward));
    assert_true(lives_at(&post, narrow, backward));
    assert_false(lives_at(&post, other, backward));
    struct low keeps = DENSE("mesh.fsdp=8", seq, "model.blocks[0].repeat=8", "remat.policy=none");
    assert_true(lives_at(&keeps, "logits", backward));
    assert_false(lives_at(&keeps, narrow, backward));
    struct low muon = DENSE("mesh.fsdp=8", seq, "optimizer.name=muon", "optimizer.moments=[f32]");
    assert_true(lives_at(&muon, "w_gate, momentum in another layout", "softmax cross-entropy"));
}

/* Whether logits or their gradient are alive there. */
static bool any_wait(const struct low *l, const char *op)
{
    static const char *const names[] = {"logits", "gradient of the logits"};
    bool any = false;
    for (int i = 0; i < 2; i++)
        any = any || (find(l, names[i]) != HB_NONE && lives_at(l, names[i], op));
    return any;
}

/* 8B,v5e4x4 with offload:mlp_gate against v5p and against no offload: the head's gradient comes
 * before the last layer, which is out of the loop, and before that of its input, with parts of it
 * on their way (16 layers of 8B, v5e over 16: six f32[256,131072] beside both logits); with layer
 * inputs on the host as well (llama1b, v5e over 8 and 2). */
static void the_last_layer_follows_the_head(void **state)
{
    (void)state;
    const char *mesh = "mesh.fsdp=8", *v5e = "hardware.device=tpu-v5e", *seq = "batch.seq=8192";
    const char *names = "remat.policy=names", *host = "remat.offload=[mlp_gate]";
    const char *backward = "gradient through block.w_down";
    struct low full = DENSE(mesh, v5e, seq), sent = DENSE(mesh, v5e, seq, names, host);
    struct low v5p = DENSE(mesh, seq, names, host);
    assert_true(any_wait(&full, backward));
    assert_true(any_wait(&v5p, backward));
    struct low narrow = DENSE(mesh, v5e, seq, names, "remat.offload=[layer_in]");
    assert_false(any_wait(&narrow, backward));
    assert_true(lives_at(&sent, "head, gradient", "gradient through the head"));
    assert_true(lives_at(&sent, "head, part on its way", "gradient of the head"));
}

/* real/70B,f128 against 8B64/loss=chunk; 8B,f64t4,chunk4 and 70B,f64t4,chunk8 on v5e. */
static void chunks_in_post_order_keep_the_head(void **state)
{
    (void)state;
    const char *mesh = "mesh.fsdp=64", *one = "batch.global=64", *rows = "batch.seq=4096";
    const char *chunks = "loss.chunks=8", *sum = "sum gradient of the head",
               *through = "gradient through the head";
    struct low few = DENSE(mesh, one, rows, chunks);
    assert_true(find_op(&few, sum) > find_op(&few, through));
    const char *tensor = "mesh.tensor=4", *v5e = "hardware.device=tpu-v5e";
    struct low lanes = DENSE(mesh, tensor, v5e, one, rows, chunks, "model.d_model=8192");
    const char *summed = "head, gradient of a chunk, summed";
    assert_int_equal(buf_of(&lanes, summed)->bytes, 4LL * 128 * 8000);
}

/* 1B/fsdp=4,tp=2; as nested scans. */
static void plain_gathers_make_the_heads_gradient_first(void **state)
{
    (void)state;
    const char *mesh[] = {"mesh.fsdp=2", "mesh.tensor=2"};
    const char *sum = "sum gradient of the head", *through = "gradient through the head";
    struct low scan = DENSE(mesh[0], mesh[1]), one = DENSE(mesh[0], SAME);
    struct low nested = DENSE(mesh[0], mesh[1], "stack.form=nested");
    assert_true(find_op(&scan, sum) < find_op(&scan, through));
    assert_true(find_op(&one, sum) > find_op(&one, through));
    assert_true(find_op(&nested, sum) < find_op(&nested, through));
}

/* plain-v5p-007-llama8b, and plain-v5p-020-llama2-7b, which keeps names:q,k,v,attn_ctx; MaxText's
 * llama3-8b/ctx4_fsdp2. */
static void kernels_run_over_whole_sequences(void **state)
{
    (void)state;
    const char *fsdp = "mesh.fsdp=2", *seq = "mesh.sequence=4";
    const char *names = "remat.policy=names", *save = "remat.save=[q, k, v, attn_ctx]";
    struct low full = DENSE(fsdp, seq), kept = DENSE(fsdp, seq, names, save);
    struct low maxtext = DENSE(fsdp, seq, "runtime.framework=maxtext");
    assert_int_equal(buf_of(&full, "attention result of the kernel")->dim[2], 2048);
    assert_int_equal(buf_of(&maxtext, "attention result of the kernel")->dim[2], 512);
    assert_int_equal(buf_of(&kept, "attention result of the kernel, saved")->dim[3], 512);
    assert_int_equal(buf_of(&kept, "k, gathered over sequence, saved")->dim[3], 2048);
    assert_int_equal(buf_of(&full, "q, gathered over sequence")->dim[2], 2048);
    assert_int_equal(find(&maxtext, "q, gathered over sequence"), HB_NONE);
}

/* 1B,sp8: the head is updated before the layers' backward pass; gate/f48,d6k against f33,d4.2k. */
static void heads_elsewhere(void **state)
{
    (void)state;
    const char *backward = "gradient through block.w_down";
    struct low seq = DENSE("mesh.sequence=8");
    assert_int_equal(find(&seq, "head, gradient before its sum"), HB_NONE);
    assert_false(lives_at(&seq, "logits", backward));
    const char *mesh = "mesh.fsdp=48", *batch = "batch.global=48", *vocab = "model.vocab=4608";
    struct low fewer = DENSE(mesh, batch, "batch.seq=600", vocab);
    struct low more = DENSE(mesh, batch, "batch.seq=1000", vocab);
    assert_true(lives_at(&fewer, "logits", backward));
    assert_false(lives_at(&more, "logits", backward));
}

/* llama3-8b over 16 in chunks of 1024 tokens: v5e's head goes round, v6e's is gathered. */
static void v6e_rings_from_more_tokens(void **state)
{
    (void)state;
#define FEW "mesh.fsdp=8", "batch.global=8", "model.vocab=64000"
    struct low v5e = DENSE(FEW, "hardware.device=tpu-v5e");
    struct low v6e = DENSE(FEW, "hardware.device=tpu-v6e");
    assert_int_not_equal(find(&v5e, "the ring's other direction"), HB_NONE);
    assert_int_equal(find(&v6e, "the ring's other direction"), HB_NONE);
}

/* gemma3-12b, v6e-256 with 32768 tokens: 28.0 GiB of temporaries, 27.7 alive. */
static void a_full_heap_is_packed_by_size(void **state)
{
    (void)state;
    struct low l = DENSE("mesh.fsdp=8", "batch.global=64");
    assert_int_equal(l.p.repack_bytes, (98028LL - 2560) << 20);
    assert_true(l.m.temp_bytes > l.m.live_temp_bytes);
    const struct hb_placing by_size = {HB_HEAP_SORTED, 16384, 512, false, false, 0};
    struct hb_memory sorted;
    hb_run_memory_placed(u.env.arena, &l.p, &by_size, &sorted);
    assert_true(sorted.temp_bytes < l.m.temp_bytes);
    struct low again = DENSE("mesh.fsdp=64", "batch.global=64", "batch.seq=512",
                             "hardware.device=tpu-v5e", "hardware.hbm=200MiB");
    assert_int_equal(again.p.repack_bytes, 1); /* its logits are made again: 70B/base */
    l.p.repack_bytes = l.m.peak_bytes - 1;
    hb_run_memory(u.env.arena, &l.p, &l.m);
    assert_int_equal(l.m.peak_bytes, sorted.peak_bytes);
}

/* tiny/layers=loop,remat=none: an unrolled program keeps its values where they are made, and a
 * layer's input where the last layer left it. */
static void layers_side_by_side_keep_in_place(void **state)
{
    (void)state;
    struct low loop = DENSE("stack.form=loop", "remat.policy=dots_no_batch");
    for (uint32_t i = 0; i < loop.p.op_count; i++)
        assert_null(strstr(loop.p.ops[i].name, "into its stack"));
    uint32_t first, last;
    life(&loop, find(&loop, "block[2].mlp gate, saved"), &first, &last);
    assert_int_equal(first, find_op(&loop, "cast block[2].w_gate") + 1);
    assert_int_equal(find(&loop, "block[1].layer input, saved"), HB_NONE);
}

/* bwd/mlp=moe_ragged,remat=none: two bf16[32768,2816] beside the stacks; einsum takes copies. */
static void ragged_products_read_the_stacks(void **state)
{
    (void)state;
    const char *mesh = "mesh.fsdp=1", *batch = "batch.global=8", *none = "remat.policy=none";
    struct low ragged = EXPERTS(mesh, batch, none, "model.blocks[0].moe.dispatch=ragged");
    struct low einsum = EXPERTS(mesh, batch, none);
    const char *copy = "expert up out of its stack";
    assert_true(find_op(&einsum, copy) != HB_NONE);
    for (uint32_t i = 0; i < ragged.p.op_count; i++)
        assert_null(strstr(ragged.p.ops[i].name, copy));
}

/* phimoe,v5p,f64, olmoe,v6e,f8: the router's gradient comes behind the activation's. */
static void ragged_outputs_are_made_again_late(void **state)
{
    (void)state;
    struct low l = EXPERTS(SAME, "model.blocks[0].moe.dispatch=ragged");
    uint32_t router = find_op(&l, "block.router probabilities, gradient of");
    assert_true(find_op(&l, "backward of expert activation") < router);
    assert_true(router < find_op(&l, "gradient through block.e_up"));
}

/* head/3B,v5e,f64,chunk4,tied: a chunk's gradient of the head comes before the other product,
 * beside the head; head/8B,v5e,f8t2,words_whole: words that tensor parallelism leaves whole have no
 * ring. */
static void whole_heads_are_summed(void **state)
{
    (void)state;
    const char *sum = "sum gradient of the head", *whole = "head, gradient before its sum";
    const char *v5e = "hardware.device=tpu-v5e", *chunks = "loss.chunks=4";
    struct low e = DENSE("mesh.fsdp=64", "batch.global=128", v5e, chunks);
    struct low p = DENSE("mesh.fsdp=64", "batch.global=128", chunks);
    assert_true(lives_at(&e, "head, gathered", sum));
    assert_false(lives_at(&p, "head, gathered", sum));
    const char *f = "mesh.fsdp=8", *t = "mesh.tensor=2", *b = "batch.global=64";
    struct low split = DENSE(f, t, b), words = DENSE(f, t, b, "sharding.vocab_over_tensor=false");
    assert_int_equal(find(&split, whole), HB_NONE);
    assert_int_equal(bytes_of(&words, whole), 4LL * 1024 * 32000);
}

/* rows--v6e,2304,f64,c1: bf16[64,36,V] in tiles of eight rows, then bf16[2304,V]; none on v5p,
 * which sums what is padded. On v5e (rows--v5e,2560,f128,c1) the head's gradient follows that of
 * its input. */
static void heads_come_by_rows(void **state)
{
    (void)state;
    const char *by = "head, gathered by rows", *f = "mesh.fsdp=64", *b = "batch.global=128";
    const char *odd = "model.d_model=2304", *v6e = "hardware.device=tpu-v6e";
    const char *v5e = "hardware.device=tpu-v5e", *whole = "head, gradient before its sum";
    struct low rows = DENSE(f, b, odd, v6e), even = DENSE(f, b, "model.d_model=4096", v6e);
    struct low sums = DENSE(f, b, odd, "hardware.device=tpu-v5p"), e = DENSE(f, b, odd, v5e);
    struct low at_once = DENSE(f, b, "model.d_model=4096", v5e);
    assert_int_equal(buf_of(&rows, by)->bytes, 2LL * 64 * 40 * 32000);
    assert_int_equal(find(&even, by), HB_NONE);
    assert_int_equal(find(&sums, by), HB_NONE);
    assert_false(lives_at(&e, "head, gathered", "gradient of the head"));
    assert_true(lives_at(&at_once, "head, gathered", "gradient of the head"));
    assert_int_not_equal(find(&e, whole), HB_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(heads_come_by_rows),
        TEST(whole_heads_are_summed),
        TEST(a_narrow_product_has_narrow_gradients),
        TEST(one_sequence_scatters),
        TEST(an_outer_block_has_slices),
        TEST(short_rings_of_one_sequence_wait),
        TEST(what_logits_wait_for),
        TEST(nobody_splits_the_residual_unasked),
        TEST(kept_scores_are_read_in_their_stack),
        TEST(rows_are_exchanged_between_copies),
        TEST(rows_or_the_table_are_gathered),
        TEST(combine_weights_lend_their_place),
        TEST(a_product_is_made_inside_its_reader),
        TEST(layers_side_by_side_keep_in_place),
        TEST(choices_are_kept_with_all_else),
        TEST(slow_updates_keep_logits),
        TEST(what_runs_beside_products_waits),
        TEST(gates_gradient_lies_apart),
        TEST(shards_along_the_lanes_are_padded),
        TEST(rings_of_one_sequence_wait),
        TEST(the_sequence_says_what_waits),
        TEST(the_last_layer_follows_the_head),
        TEST(chunks_in_post_order_keep_the_head),
        TEST(plain_gathers_make_the_heads_gradient_first),
        TEST(kernels_run_over_whole_sequences),
        TEST(heads_elsewhere),
        TEST(v6e_rings_from_more_tokens),
        TEST(a_full_heap_is_packed_by_size),
        TEST(ragged_products_read_the_stacks),
        TEST(ragged_outputs_are_made_again_late),
    };
    return cmocka_run_group_tests_name("lower_tpu", tests, NULL, NULL);
}
