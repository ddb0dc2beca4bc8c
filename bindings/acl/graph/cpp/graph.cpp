/* The graph compiler's functions of C++ on those of C (pto_acl.h). Each has a name of C here, and its own in src/lib.rs. SPDX-License-Identifier: Apache-2.0 OR MIT

   No exception leaves a function. Strings and buffers belong to shared pointers, which the caller frees by code that they bring along. */
#include <cstdlib>
#include <exception>
#include <new>
#include <vector>

#include "ge/ge_ir_build.h"
#include "pto_acl.h"

namespace ge {

struct GraphImpl {
    std::string name;
    uint64_t handle = 0;

    ~GraphImpl() {
        if (handle) ptoAclGraphDestroy(handle);
    }
};

} // namespace ge

namespace {

/* What is private in the classes. A framework has their bytes in its own memory, and only these. */
struct StringBytes {
    std::shared_ptr<std::string> text;
};
struct GraphBytes {
    std::shared_ptr<ge::GraphImpl> graph;
};
static_assert(sizeof(StringBytes) == sizeof(ge::AscendString) && sizeof(GraphBytes) == sizeof(ge::Graph), "one pointer each");

const char *text(const ge::AscendString &string) {
    const auto &held = reinterpret_cast<const StringBytes &>(string).text;
    return held ? held->c_str() : "";
}

/* Options as two lists of texts. */
struct Lists {
    std::vector<const char *> names, values;

    explicit Lists(const ge::Options &options) {
        for (const auto &[name, value] : options) {
            names.push_back(text(name));
            values.push_back(text(value));
        }
    }
};

ge::graphStatus status(aclError code) {
    return code == 0 ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

/* Runs a step. Without memory it fails as any other one. */
template <typename Step>
ge::graphStatus guarded(Step step) noexcept {
    try {
        return step();
    } catch (const std::exception &) {
        return ge::GRAPH_FAILED;
    }
}

} // namespace

extern "C" {

void pto_ge_make_string(ge::AscendString *self, const char *name) noexcept {
    auto *bytes = new (self) StringBytes;
    guarded([&] {
        if (name) bytes->text = std::make_shared<std::string>(name);
        return ge::GRAPH_SUCCESS;
    });
}

bool pto_ge_string_less(const ge::AscendString *self, const ge::AscendString *other) noexcept {
    return std::string_view(text(*self)) < std::string_view(text(*other));
}

void pto_ge_make_graph(ge::Graph *self, const char *name) noexcept {
    auto *bytes = new (self) GraphBytes;
    guarded([&] {
        bytes->graph = std::make_shared<ge::GraphImpl>();
        bytes->graph->name = name ? name : "";
        return ge::GRAPH_SUCCESS;
    });
}

ge::graphStatus pto_ge_build_initialize(ge::Options *options) noexcept {
    return guarded([&] {
        Lists lists(*options);
        return status(ptoAclGraphBegin(lists.names.data(), lists.values.data(), lists.names.size()));
    });
}

void pto_ge_build_finalize() noexcept {}

ge::graphStatus pto_ge_parse(const char *buffer, size_t size, const ge::Options *options, ge::Graph *graph) noexcept {
    return guarded([&] {
        auto &held = reinterpret_cast<GraphBytes &>(*graph).graph;
        /* Copies of the graph keep what they have. */
        auto parsed = std::make_shared<ge::GraphImpl>();
        if (held) parsed->name = held->name;
        Lists lists(*options);
        auto code = ptoAclGraphParse(buffer, size, lists.names.data(), lists.values.data(), lists.names.size(), &parsed->handle);
        if (code == 0) held = parsed;
        return status(code);
    });
}

ge::graphStatus pto_ge_build_model(const ge::Graph *graph, const ge::Options *options, ge::ModelBufferData *model) noexcept {
    return guarded([&] {
        const auto &held = reinterpret_cast<const GraphBytes &>(*graph).graph;
        void *bytes = nullptr;
        uint64_t length = 0;
        Lists lists(*options);
        auto code = ptoAclGraphBuild(held ? held->handle : 0, lists.names.data(), lists.values.data(), lists.names.size(), &bytes, &length);
        if (code != 0) return ge::GRAPH_FAILED;
        model->data = std::shared_ptr<uint8_t>(static_cast<uint8_t *>(bytes), std::free);
        model->length = length;
        return ge::GRAPH_SUCCESS;
    });
}

ge::graphStatus pto_ge_save_model(const char *file, const ge::ModelBufferData *model) noexcept {
    return status(ptoAclGraphSave(file, model->data.get(), model->length));
}

} // extern "C"
