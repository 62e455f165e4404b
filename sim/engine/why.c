/* The reasons of buffers by how their names end: see why.h. The first row that agrees decides; the
 * rows of a whole category come last. */
#include "sim/engine/why.h"

#include <string.h>

#include "base/str.h"

static const struct reason {
    const char *ending; /* of the name */
    const char *text;
} endings[] = {
    /* weights and states */
    {", f32 master", "precision.master keeps the weight in f32 beside the one that is used"},
    {", first moment", "state of the optimizer, one value a weight; optimizer.moments sets its "
                       "type, optimizer.offload its place"},
    {", second moment", "state of the optimizer: squares of the gradients, averaged; "
                        "optimizer.name and optimizer.moments change it"},
    {", momentum gathered", "muon orthogonalises whole matrices: the momentum of all devices"},
    {", momentum in another layout", "muon's products want another layout than the rings left"},
    {"muon iterate", "muon turns the momentum step by step: the matrix as it is now"},
    {"muon next iterate", "muon turns the momentum step by step: the matrix that follows"},
    {"muon square", "muon turns the momentum step by step: the product with its transpose"},
    {", share of the muon iterate", "this device's part of what muon made of the momentum"},
    {", ema", "optimizer.ema keeps an average of the weights over the steps"},
    {", cast once for all layers",
     "the compiler casts the whole stack before the loop over layers, not one layer at a time"},
    {", cast for one layer", "the weight of the layer that runs, in the type of the products"},
    {", slice of an outer block", "stack.form nested: the weights of the inner loop's layers"},
    {", transposed copy of the stack",
     "a gather over the last dimension wants it first: the compiler turns the stack once"},
    {", gathered for all iterations",
     "each iteration of the pipeline needs the stage's weights: gathered once, before the loop"},
    {", gathered", "fsdp: the shares of all devices side by side, for the products that use them"},
    {", padded with zeros",
     "the gather is a sum: the own share, in zeros of the size of the whole"},
    /* gradients */
    {", gradient before its sum",
     "what this device's tokens give for the whole weight, before the sum over devices"},
    {", gradient accumulated", "batch.accumulate sums the gradients of the microbatches in f32"},
    {", gradient of an outer block", "stack.form nested: gradients of the inner loop's layers"},
    {", gradient of one iteration", "one microbatch's part; the pipeline adds it to the sum"},
    {", gradient of the gathered stack", "summed whole over the iterations, then over the devices"},
    {", gradient of the ring's other direction",
     "the product goes round in two directions; each sums its own half"},
    {", gradient of a chunk", "loss.chunks: one chunk's part of the head's gradient"},
    {", gradient of a chunk, summed", "loss.chunks: the chunk's part, summed over the devices"},
    {", gradient over the chunks", "loss.chunks: the head's gradient grows chunk by chunk"},
    {", gradient over the chunks, in f32", "loss.chunks: the sum over chunks is kept in f32"},
    {", zeros for its gradient",
     "the gradient is scattered row by row into zeros, which the compiler makes early"},
    {", gradient of its head",
     "the table is the head, too: the rows' gradients are added to its own"},
    {", gradient of its head, gathered", "where each device has rows of all of the table"},
    {", zeros for nan_to_num", "step.nan_to_num compares and replaces with zeros of this size"},
    {", gradient summed", "the gradient after its sum over the devices"},
    {"gradient carried to the next layer", "the backward pass hands it from layer to layer"},
    {"gradient of the last norm's result", "starts the backward pass below the head"},
    {"gradient of the last residual", "what the backward pass of the layers starts from"},
    /* ends */
    {"gradient of the logits",
     "as large as the logits, a value for each token and word; loss.chunks makes it smaller"},
    {"logits before the cast", "loss.dot sets the type of the head's product; the loss casts it"},
    {"logits", "a value for each token and word of the vocabulary; loss.chunks and loss.dot make "
               "it smaller"},
    {"embedded tokens", "the rows of the embedding, input of the first layer"},
    {", own columns of all tokens", "the embedding is split by columns: each device's part of all "
                                    "rows, before they are exchanged"},
    {", exchanged", "gradients of rows, sent to the devices that hold these columns"},
    {"index tensor of the one-hot embedding", "embedding.lookup onehot compares each token with "
                                              "every word"},
    {"tokens", "given by the caller"},
    {"labels", "given by the caller"},
    {"last norm's result", "input of the head, needed again for the head's gradient"},
    /* layers */
    {"outer inputs, saved for backward",
     "stack.form nested: the input of each outer block is kept, the rest is made again"},
    {"layer input, saved for backward",
     "the input of each layer is kept, one for each layer: from it the backward pass makes again "
     "what was not; remat.policy, remat.offload"},
    {"inputs of the iterations, saved for backward",
     "pipeline.iteration_save: the input of each iteration is kept"},
    {", saved for backward",
     "the forward pass keeps it, one for each layer; remat.policy and remat.offload change that"},
    {", scratch", "the kernel works in it; nobody reads it afterwards"},
    {", summed", "the sum over the devices of a product that was split"},
    {", again", "was not kept: the backward pass makes it again"},
    {"causal mask", "true where a token may look; made once, read in each layer"},
    {"fill value of the mask", "stands where a token may not look"},
    {"dispatch mask", "which token goes to which expert; grows with experts and capacity"},
    {"combine weights", "which expert's result counts how much for which token"},
    {"expert inputs",
     "the tokens of each expert, up to its capacity; moe.dispatch, moe.capacity_factor"},
    {"tokens sorted by expert", "each token as often as it has experts, in the experts' order"},
    {"attention scores", "tokens times tokens: attention.kernel naive stores all of them"},
    {"attention scores of all blocks", "attention.kernel blocked keeps each block's scores"},
    {"attention probabilities", "tokens times tokens: attention.kernel naive stores all of them"},
    /* pipelines */
    {"inputs of the iterations", "all microbatches, as the pipeline takes them in"},
    {"outputs of the iterations", "the pipeline keeps the result of each iteration"},
    {"outputs of the pipeline", "the microbatches' results, taken from those of all iterations"},
    {"state from the stage before", "what the stage before has sent"},
    {"state of the stage", "what the stage hands on to the next"},
};

static const char *const categories[] = {
    [HB_CAT_PARAMS] = "weights: this device's share stays all through the step",
    [HB_CAT_OPTIMIZER] = "state of the optimizer: this device's share stays all through the step",
    [HB_CAT_GRADIENTS] = "gradient of a weight: waits for the update",
    [HB_CAT_SAVED] = "the forward pass keeps it for the backward pass",
    [HB_CAT_WORKING] = "a value between two ops: alive from the one to the last that reads it",
    [HB_CAT_LOGITS] = "a value for each token and word of the vocabulary",
    [HB_CAT_COMMUNICATION] = "result or operand of a collective",
    [HB_CAT_PADDING] = "tiles are filled up to whole ones",
    [HB_CAT_FRAGMENTATION] = "gaps that the order of lives leaves between buffers",
    [HB_CAT_EMA] = "optimizer.ema keeps an average of the weights over the steps",
    [HB_CAT_INPUTS] = "given by the caller",
    [HB_CAT_RUNTIME] = "the runtime's own",
};

const char *hb_why(const struct hb_buf *buf)
{
    if (buf->why && *buf->why)
        return buf->why;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (hb_str_ends(buf->name, endings[i].ending))
            return endings[i].text;
    return categories[buf->category];
}
