/* A framework in C++ that drives the graph compiler as ONNX Runtime's provider for CANN does: it hands ONNX models over in memory, builds them for
   extents, loads the bytes, and runs them in a stream with buffers that it describes.

   `onnx FOLDER`: files are written there. The models are written here, field by field. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_op.h"
#include "acl/acl_op_compiler.h"
#include "graph/ascend_string.h"
#include "graph/graph.h"
#include "parser/onnx_parser.h"

#define FAIL(...) (printf("line %d: ", __LINE__), printf(__VA_ARGS__), printf("; %s\n", message()), exit(1))
#define IS(code, call)                                                                                  \
    do {                                                                                                \
        long found_ = (long)(call);                                                                     \
        if (found_ != (long)(code)) FAIL("%s: %ld, not %ld", #call, found_, (long)(code));              \
    } while (0)
#define OK(call) IS(0, call)
#define HOLDS(condition) IS(1, (condition) ? 1 : 0)

static const char *message() {
    const char *text = aclGetRecentErrMsg();
    return text ? text : "no message";
}

/* The fields of a message of protobuf. */
struct Message {
    std::string bytes;

    Message &number(int field, uint64_t value) {
        varint(field << 3);
        varint(value);
        return *this;
    }
    Message &text(int field, const std::string &value) {
        varint(field << 3 | 2);
        varint(value.size());
        bytes += value;
        return *this;
    }
    Message &inner(int field, const Message &value) { return text(field, value.bytes); }

private:
    void varint(uint64_t value) {
        for (; value >= 128; value >>= 7) bytes += (char)(value | 128);
        bytes += (char)value;
    }
};

/* An input or output of floats; -1: an extent that the file does not know. */
static Message tensor(const char *name, const std::vector<int> &shape, int type = 1) {
    Message dims;
    for (int extent : shape) dims.inner(1, extent < 0 ? Message().text(2, "n") : Message().number(1, extent));
    return Message().text(1, name).inner(2, Message().inner(1, Message().number(1, type).inner(2, dims)));
}

static Message node(const char *type, const char *name, const std::vector<const char *> &inputs, const char *output) {
    Message made;
    for (const char *input : inputs) made.text(1, input);
    return made.text(2, output).text(3, name).text(4, type);
}

static Message weights(const char *name, const std::vector<int> &shape, const std::vector<float> &values) {
    Message made;
    for (int extent : shape) made.number(1, extent);
    std::string raw(reinterpret_cast<const char *>(values.data()), 4 * values.size());
    return made.number(2, 1).text(8, name).text(9, raw);
}

struct Model {
    Message graph;

    Model &add(int field, const Message &part) { return graph.inner(field, part), *this; }
    std::string bytes() const {
        return Message().number(1, 8).inner(7, Message(graph).text(2, "tested")).inner(8, Message().number(2, 13)).bytes;
    }
};

using Options = std::map<ge::AscendString, ge::AscendString>;

static uint32_t parse(const std::string &bytes, ge::Graph &graph) {
    return ge::aclgrphParseONNXFromMem(bytes.data(), bytes.size(), Options(), graph);
}

static uint32_t build(const ge::Graph &graph, const std::string &shape, ge::ModelBufferData &model) {
    Options options;
    options.emplace("input_shape", shape.c_str());
    return ge::aclgrphBuildModel(graph, options, model);
}

/* A device's buffer with these floats. */
struct Memory {
    void *at = nullptr;
    size_t bytes;

    explicit Memory(const std::vector<float> &values) : Memory(4 * values.size()) {
        OK(aclrtMemcpy(at, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    }
    explicit Memory(size_t bytes) : bytes(bytes) { OK(aclrtMalloc(&at, bytes, ACL_MEM_MALLOC_HUGE_FIRST)); }
    ~Memory() { aclrtFree(at); }
    std::vector<float> values() const {
        std::vector<float> made(bytes / 4);
        OK(aclrtMemcpy(made.data(), bytes, at, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
        return made;
    }
};

static aclmdlDataset *data_set(const std::vector<const Memory *> &buffers) {
    aclmdlDataset *set = aclmdlCreateDataset();
    for (const Memory *memory : buffers) OK(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(memory->at, memory->bytes)));
    return set;
}

static void destroy(aclmdlDataset *set) {
    for (size_t index = 0; index < aclmdlGetDatasetNumBuffers(set); index++)
        OK(aclDestroyDataBuffer(aclmdlGetDatasetBuffer(set, index)));
    OK(aclmdlDestroyDataset(set));
}

/* Runs a model in a stream. The sets are gone before the run is over, as the provider does it. */
static void run(uint32_t model, const std::vector<const Memory *> &inputs, const std::vector<const Memory *> &outputs, aclrtStream stream) {
    aclmdlDataset *in = data_set(inputs), *out = data_set(outputs);
    OK(aclmdlExecuteAsync(model, in, out, stream));
    destroy(in);
    destroy(out);
    OK(aclrtSynchronizeStream(stream));
}

enum { K = 3, N = 2 };
static const std::vector<float> W = {1, -2, 0.5f, 4, -1, 3};

/* relu(x w + bias), with rows of x that only a build knows. */
static Model linear() {
    return Model()
        .add(1, node("MatMul", "product", {"x", "w"}, "p"))
        .add(1, node("Add", "bias", {"p", "b"}, "s"))
        .add(1, node("Relu", "relu", {"s"}, "y"))
        .add(5, weights("w", {K, N}, W))
        .add(5, weights("b", {N}, {0.25f, -0.5f}))
        .add(11, tensor("x", {-1, K}))
        .add(12, tensor("y", {-1, N}));
}

static std::vector<float> rows(int count) {
    std::vector<float> values(count * K);
    for (size_t index = 0; index < values.size(); index++) values[index] = (float)((int)(index * 7 % 11) - 5);
    return values;
}

static void check_linear(const std::vector<float> &x, const std::vector<float> &y, int count) {
    for (int row = 0; row < count; row++)
        for (int column = 0; column < N; column++) {
            float wanted = column ? -0.5f : 0.25f;
            for (int k = 0; k < K; k++) wanted += x[row * K + k] * W[k * N + column];
            wanted = wanted > 0 ? wanted : 0;
            if (std::fabs(y[row * N + column] - wanted) > 1e-5f) FAIL("row %d: %g, not %g", row, y[row * N + column], wanted);
        }
}

/* Built for several extents, loaded from memory and from a file. */
static void builds(const std::string &folder, aclrtStream stream) {
    ge::Graph graph("tested");
    OK(parse(linear().bytes(), graph));
    ge::ModelBufferData built;
    for (int count : {1, 5, 64}) {
        OK(build(graph, "x:" + std::to_string(count) + ",3", built));
        uint32_t model;
        OK(aclmdlLoadFromMem(built.data.get(), built.length, &model));
        aclmdlDesc *description = aclmdlCreateDesc();
        OK(aclmdlGetDesc(description, model));
        IS(1, aclmdlGetNumInputs(description));
        IS(1, aclmdlGetNumOutputs(description));
        aclmdlIODims dims;
        OK(aclmdlGetOutputDims(description, 0, &dims));
        HOLDS(dims.dimCount == 2 && dims.dims[0] == count && dims.dims[1] == N && !strcmp(dims.name, "y"));
        IS(4 * count * K, aclmdlGetInputSizeByIndex(description, 0));
        OK(aclmdlDestroyDesc(description));
        auto x = rows(count);
        Memory in(x), out(4 * count * N);
        for (int again = 0; again < 3; again++) run(model, {&in}, {&out}, stream);
        check_linear(x, out.values(), count);
        OK(aclmdlUnload(model));
    }
    std::string file = folder + "/kept";
    OK(ge::aclgrphSaveModel(file.c_str(), built));
    uint32_t model;
    OK(aclmdlLoadFromFile((file + ".om").c_str(), &model));
    auto x = rows(64);
    Memory in(x), out(4 * 64 * N);
    aclmdlDataset *ins = data_set({&in}), *outs = data_set({&out});
    IS(0, aclmdlGetDatasetTensorDesc(outs, 0));
    HOLDS(strstr(message(), "no model has written"));
    OK(aclmdlExecute(model, ins, outs));
    check_linear(x, out.values(), 64);
    aclTensorDesc *written = aclmdlGetDatasetTensorDesc(outs, 0);
    int64_t extent = 0;
    HOLDS(written && aclmdlGetDatasetTensorDesc(outs, 0) == written);
    IS(2, aclGetTensorDescNumDims(written));
    OK(aclGetTensorDescDimV2(written, 0, &extent));
    IS(64, extent);
    IS(4 * 64 * N, aclGetTensorDescSize(written));
    IS(100000, aclGetTensorDescDimV2(written, 2, &extent));
    destroy(ins);
    destroy(outs);
    IS(107017, aclGetTensorDescDimV2(written, 0, &extent));
    OK(aclmdlUnload(model));
    IS(ge::GRAPH_FAILED, ge::aclgrphSaveModel((folder + "/no/such").c_str(), built));
    HOLDS(strstr(message(), "cannot be written"));
}

/* A scalar, a tensor of truth values, and one with six dimensions keep what a program file cannot say. */
static void kept_types(aclrtStream stream) {
    Model model = Model()
                      .add(1, node("ReduceSum", "sum", {"x"}, "total").inner(5, Message().text(1, "keepdims").number(3, 0).number(20, 2)))
                      .add(1, node("Greater", "greater", {"x", "zero"}, "positive"))
                      .add(5, weights("zero", {}, {0}))
                      .add(11, tensor("x", {1, 1, 1, 2, 1, 2}))
                      .add(12, tensor("total", {}))
                      .add(12, tensor("positive", {1, 1, 1, 2, 1, 2}, 9));
    ge::Graph graph("types");
    OK(parse(model.bytes(), graph));
    ge::ModelBufferData built;
    OK(build(graph, "x:1,1,1,2,1,2", built));
    uint32_t id;
    OK(aclmdlLoadFromMem(built.data.get(), built.length, &id));
    aclmdlDesc *description = aclmdlCreateDesc();
    OK(aclmdlGetDesc(description, id));
    IS(2, aclmdlGetNumOutputs(description));
    aclmdlIODims dims;
    OK(aclmdlGetOutputDims(description, 0, &dims));
    IS(0, dims.dimCount);
    OK(aclmdlGetOutputDims(description, 1, &dims));
    HOLDS(dims.dimCount == 6 && dims.dims[3] == 2 && dims.dims[5] == 2);
    IS(ACL_BOOL, aclmdlGetOutputDataType(description, 1));
    IS(4, aclmdlGetOutputSizeByIndex(description, 1));
    OK(aclmdlDestroyDesc(description));
    Memory in({1.5f, -2, 3, 0}), total((size_t)4), positive((size_t)4);
    run(id, {&in}, {&total, &positive}, stream);
    HOLDS(total.values()[0] == 2.5f);
    uint8_t truths[4];
    OK(aclrtMemcpy(truths, 4, positive.at, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(truths[0] == 1 && truths[1] == 0 && truths[2] == 1 && truths[3] == 0);
    OK(aclmdlUnload(id));
}

/* A run that meets an index without an element fails with the node's name, and the next one is right. */
static void wrong_index(aclrtStream stream) {
    Model model = Model()
                      .add(1, node("Gather", "look_up", {"w", "i"}, "y"))
                      .add(5, weights("w", {4}, {10, 11, 12, 13}))
                      .add(11, tensor("i", {2}, 7))
                      .add(12, tensor("y", {2}));
    ge::Graph graph("indices");
    OK(parse(model.bytes(), graph));
    ge::ModelBufferData built;
    OK(build(graph, "i:2", built));
    uint32_t id;
    OK(aclmdlLoadFromMem(built.data.get(), built.length, &id));
    Memory in((size_t)16), out((size_t)8);
    int64_t indices[2] = {1, 9};
    OK(aclrtMemcpy(in.at, 16, indices, 16, ACL_MEMCPY_HOST_TO_DEVICE));
    aclmdlDataset *ins = data_set({&in}), *outs = data_set({&out});
    OK(aclmdlExecuteAsync(id, ins, outs, stream));
    IS(507015, aclrtSynchronizeStream(stream));
    HOLDS(strstr(message(), "operator Gather of node look_up: the index is 9, and the axis has 4 elements"));
    IS(507015, aclmdlExecute(id, ins, outs));
    HOLDS(strstr(message(), "node look_up"));
    indices[1] = 3;
    OK(aclrtMemcpy(in.at, 16, indices, 16, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclmdlExecute(id, ins, outs));
    HOLDS(out.values()[0] == 11 && out.values()[1] == 13);
    destroy(ins);
    destroy(outs);
    OK(aclmdlUnload(id));
}

/* Everything that cannot be built is named, with its type and the reason. */
static void refused() {
    ge::Graph graph("refused"), copy(graph);
    ge::ModelBufferData built;
    IS(ge::GRAPH_FAILED, build(graph, "x:1", built));
    HOLDS(strstr(message(), "the graph has no model; parse one first"));
    IS(ge::GRAPH_FAILED, parse("this is no model", graph));
    HOLDS(strstr(message(), "no ONNX file"));
    OK(parse(Model()
                 .add(1, node("Teleport", "first_of_two", {"x"}, "a"))
                 .add(1, node("Relu", "between", {"a"}, "b"))
                 .add(1, node("Divinate", "second_of_two", {"b"}, "y"))
                 .add(11, tensor("x", {-1}))
                 .add(12, tensor("y", {-1}))
                 .bytes(),
             graph));
    IS(ge::GRAPH_FAILED, build(graph, "x:8", built));
    std::string said = message();
    HOLDS(said.find("node first_of_two (Teleport") != std::string::npos);
    HOLDS(said.find("node second_of_two (Divinate") != std::string::npos);
    HOLDS(said.find("[500002]") != std::string::npos && !built.data);
    OK(parse(linear().bytes(), graph));
    IS(ge::GRAPH_FAILED, build(graph, "y:1,3", built));
    HOLDS(strstr(message(), "names an input y, and the model tested has x"));
    IS(ge::GRAPH_FAILED, build(graph, "x:-1,3", built));
    HOLDS(strstr(message(), "an extent of \"-1\""));
    IS(ge::GRAPH_FAILED, build(graph, "", built));
    HOLDS(strstr(message(), "does not say the extents of x"));
    IS(ge::GRAPH_FAILED, build(graph, "x:4,5", built));
    HOLDS(strstr(message(), "input x"));
    Options options;
    options.emplace("wonder", "1");
    IS(ge::GRAPH_FAILED, ge::aclgrphBuildModel(graph, options, built));
    HOLDS(strstr(message(), "no option wonder"));
    IS(ge::GRAPH_FAILED, ge::aclgrphBuildInitialize(options));
    HOLDS(strstr(message(), "no option wonder"));
    IS(ge::GRAPH_FAILED, ge::aclgrphSaveModel("nothing", built));
}

struct Attributes {
    aclopAttr *list = aclopCreateAttr();
    ~Attributes() { aclopDestroyAttr(list); }
};

/* Runs a single operator on tensors: types and extents, and where they are. */
struct Operand {
    aclDataType type;
    std::vector<int64_t> shape;
    void *at;
    size_t bytes;
    std::vector<int64_t> constant = {};
};

static aclError single(const char *name, const std::vector<Operand> &inputs, const std::vector<Operand> &outputs, aclopAttr *attributes, aclrtStream stream) {
    std::vector<aclTensorDesc *> descriptions[2];
    std::vector<aclDataBuffer *> buffers[2];
    const std::vector<Operand> *sides[2] = {&inputs, &outputs};
    for (int side = 0; side < 2; side++)
        for (const Operand &one : *sides[side]) {
            aclTensorDesc *made = aclCreateTensorDesc(one.type, (int)one.shape.size(), one.shape.data(), ACL_FORMAT_ND);
            HOLDS(made);
            if (!one.constant.empty()) OK(aclSetTensorConst(made, (void *)one.constant.data(), 8 * one.constant.size()));
            descriptions[side].push_back(made);
            buffers[side].push_back(aclCreateDataBuffer(one.at, one.bytes));
        }
    aclError code = aclopCompileAndExecute(name, (int)inputs.size(), descriptions[0].data(), buffers[0].data(), (int)outputs.size(),
                                           descriptions[1].data(), buffers[1].data(), attributes, ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL, stream);
    for (int side = 0; side < 2; side++) {
        for (aclTensorDesc *made : descriptions[side]) aclDestroyTensorDesc(made);
        for (aclDataBuffer *made : buffers[side]) OK(aclDestroyDataBuffer(made));
    }
    return code;
}

static void singles(aclrtStream stream) {
    Memory a({1, 2, 3, 4, 5, 6}), b({6, 5, 4, 3, 2, 1}), y((size_t)24), small((size_t)16);
    auto f = [](std::vector<int64_t> shape, const Memory &memory) { return Operand{ACL_FLOAT, shape, memory.at, memory.bytes}; };
    Attributes none, product, turned, cast, pool, wrong;
    for (int again = 0; again < 2; again++) OK(single("Sub", {f({2, 3}, a), f({2, 3}, b)}, {f({2, 3}, y)}, none.list, stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS((y.values() == std::vector<float>{-5, -3, -1, 1, 3, 5}));
    /* a [2,3] times b [2,3], turned; factors in memory of the host. */
    OK(aclopSetAttrBool(product.list, "transpose_a", 0));
    OK(aclopSetAttrBool(product.list, "transpose_b", 1));
    float alpha = 2, beta = 0.5f;
    Memory c({2, 4, 6, 8});
    OK(single("GEMM", {f({2, 3}, a), f({2, 3}, b), f({2, 2}, c), {ACL_FLOAT, {1}, &alpha, 4}, {ACL_FLOAT, {1}, &beta, 4}}, {f({2, 2}, small)},
              product.list, stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS((small.values() == std::vector<float>{2 * 28 + 1, 2 * 10 + 2, 2 * 73 + 3, 2 * 28 + 4}));
    int64_t axes[2] = {1, 0};
    OK(aclopSetAttrListInt(turned.list, "perm", 2, axes));
    OK(single("TransposeD", {f({2, 3}, a)}, {f({3, 2}, y)}, turned.list, stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS((y.values() == std::vector<float>{1, 4, 2, 5, 3, 6}));
    OK(aclopSetAttrInt(cast.list, "dst_type", ACL_INT32));
    OK(single("Cast", {f({6}, a)}, {{ACL_INT32, {6}, y.at, y.bytes}}, cast.list, stream));
    OK(aclrtSynchronizeStream(stream));
    int32_t whole[6];
    OK(aclrtMemcpy(whole, 24, y.at, 24, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(whole[0] == 1 && whole[5] == 6);
    OK(single("Fill", {{ACL_INT64, {2}, nullptr, 0, {2, 2}}, f({1}, b)}, {f({2, 2}, small)}, none.list, stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS((small.values() == std::vector<float>{6, 6, 6, 6}));
    int64_t window[4] = {1, 1, 1, 3}, steps[4] = {1, 1, 1, 1}, pads[4] = {0, 0, 0, 0};
    OK(aclopSetAttrListInt(pool.list, "ksize", 4, window));
    OK(aclopSetAttrListInt(pool.list, "strides", 4, steps));
    OK(aclopSetAttrListInt(pool.list, "pads", 4, pads));
    OK(aclopSetAttrString(pool.list, "data_format", "NCHW"));
    OK(aclopSetAttrString(pool.list, "padding_mode", "CALCULATED"));
    OK(single("MaxPoolV3", {f({1, 1, 2, 3}, a)}, {f({1, 1, 2, 1}, small)}, pool.list, stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS(small.values()[0] == 3 && small.values()[1] == 6);
    IS(100024, single("Teleport", {f({6}, a)}, {f({6}, y)}, none.list, stream));
    HOLDS(strstr(message(), "no operator Teleport here"));
    IS(100022, single("Add", {f({2, 3}, a), f({2, 3}, b)}, {f({3, 2}, y)}, none.list, stream));
    HOLDS(strstr(message(), "operator Add: output 0 is f32[2, 3]"));
    OK(aclopSetAttrFloat(wrong.list, "wonder", 1));
    IS(100023, single("Add", {f({2, 3}, a), f({2, 3}, b)}, {f({2, 3}, y)}, wrong.list, stream));
    HOLDS(strstr(message(), "operator Add: it has no attribute wonder"));
    IS(500002, single("Add", {f({2, 3}, a), f({4}, b)}, {f({2, 3}, y)}, none.list, stream));
    IS(100018, single("Relu", {f({6}, a)}, {{ACL_FLOAT, {6}, y.at, 8}}, none.list, stream));
    IS(0, aclCreateTensorDesc((aclDataType)99, 0, NULL, ACL_FORMAT_ND));
    aclTensorDesc *wide = aclCreateTensorDesc(ACL_FLOAT, 0, NULL, ACL_FORMAT_ND);
    IS(4, aclGetTensorDescSize(wide));
    IS(100000, aclSetTensorConst(wide, whole, 8));
    aclDestroyTensorDesc(wide);
    IS(0, aclGetTensorDescSize(wide));
}

int main(int count, char **arguments) {
    HOLDS(count == 2);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    Options options;
    options.emplace("ge.socVersion", aclrtGetSocName());
    OK(ge::aclgrphBuildInitialize(options));
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    builds(arguments[1], stream);
    kept_types(stream);
    wrong_index(stream);
    refused();
    singles(stream);
    OK(aclrtDestroyStream(stream));
    ge::aclgrphBuildFinalize();
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    printf("onnx: ok\n");
    return 0;
}
