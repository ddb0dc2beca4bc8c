/* The graph compiler of the PTO Runtime, under the names that frameworks call. SPDX-License-Identifier: Apache-2.0 OR MIT
   docs/how-to/acl.md says what it builds. Link with -lacl_op_compiler. */
#ifndef PTO_GE_GE_IR_BUILD_H
#define PTO_GE_GE_IR_BUILD_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ge {

/* 0: success. aclGetRecentErrMsg, and standard error, say why a step failed. */
using graphStatus = uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0;
constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFF;

/* Text. */
class AscendString {
public:
    AscendString() = default;
    explicit AscendString(const char *name);
    template <size_t N>
    AscendString(const char (&name)[N]) : AscendString(static_cast<const char *>(name)) {}
    bool operator<(const AscendString &other) const;

private:
    std::shared_ptr<std::string> name_;
};

struct GraphImpl;

/* A model that was parsed. */
class Graph {
public:
    explicit Graph(const char *name);
    Graph() = default;

private:
    std::shared_ptr<GraphImpl> impl_;
};

/* A built model: the bytes that aclmdlLoadFromMem takes. */
struct ModelBufferData {
    std::shared_ptr<uint8_t> data = nullptr;
    uint64_t length = 0;
};

using Options = std::map<AscendString, AscendString>;

/* Before the first build: options of the compiler, such as ge.socVersion. */
graphStatus aclgrphBuildInitialize(std::map<AscendString, AscendString> &options);
/* After the last build. */
void aclgrphBuildFinalize();
/* Parses an ONNX model in memory; it has no options. */
graphStatus aclgrphParseONNXFromMem(const char *buffer, size_t size, const std::map<AscendString, AscendString> &options,
                                    Graph &graph);
/* Builds a model for fixed extents: the option input_shape, as in "x:1,3,48,192;y:2". */
graphStatus aclgrphBuildModel(const Graph &graph, const std::map<AscendString, AscendString> &options, ModelBufferData &model);
/* Writes a built model to a file: the name, with .om behind it. */
graphStatus aclgrphSaveModel(const char *file, const ModelBufferData &model);

} // namespace ge
#endif
