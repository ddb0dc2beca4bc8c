//! The table of the library's kernels: one row each. From it come the func ids, the entries, the calls
//! ([`crate::library`]), what `pto info kernels` shows, and the blob of kernels for AArch64.
//!
//! ```text
//! func id  CONSTANT  name  core kind  "what it computes"  (argument: role [extent], ..) => { the arithmetic }
//! ```
//! | role | the word | in the arithmetic |
//! |---|---|---|
//! | `In [n]`, `Out [n]`, `InOut [n]` | a GM address | a `Vector` of n `f32` |
//! | `In [rows, cols; ld]`, and so on | a GM address | a `Matrix`; `ld` is the distance between its rows |
//! | `In`, `Out`, `InOut` | a GM address | the address; the arithmetic is unsafe, reads by `args::load`, and reaches as far as numbers in memory say: who launches it is refused, a builder program is not |
//! | `In {elements}`, and so on | the same | the same; the kernel reaches so far, and `context` is the number of blocks there |
//! | `Size` | a number of 64 bits | the same |
//! | `F32` | an `f32` in the low half | an `f32` |
//!
//! The arguments are followed by `; context` where the kernel looks at its block, and by `| words` where it has more words than the row
//! names and reads them itself, by the address of the first.
//!
//! Extents are expressions over the words of the same row. `In`, `Out` and `InOut` also say what a task with tensors
//! waits for.
//!
//! Why it is so: `docs/decisions/kernel-calls.md`.

/// Passes the rows to the macro that is named in the brackets, after what follows them.
#[doc(hidden)]
#[macro_export]
macro_rules! kernels {
    ([$($then:tt)*] $($with:tt)*) => {
        $($then)*! {
            $($with)*
            0 ADD add AIV "out = a + b"
                (a: In [n], b: In [n], out: Out [n], n: Size)
                => { elementwise::add(a, b, out) };
            1 ADD_SCALAR add_scalar AIV "out = a + scalar"
                (a: In [n], scalar: F32, out: Out [n], n: Size)
                => { elementwise::add_scalar(a, scalar, out) };
            2 MUL mul AIV "out = a * b, elementwise"
                (a: In [n], b: In [n], out: Out [n], n: Size)
                => { elementwise::mul(a, b, out) };
            3 EXP exp AIV "out = e^a"
                (a: In [n], out: Out [n], n: Size)
                => { elementwise::exp(a, out) };
            4 ROW_MAX row_max AIV "out[r] = max(a[r])"
                (a: In [rows, cols; a_ld], out: Out [rows], rows: Size, cols: Size, a_ld: Size)
                => { reduce::row_max(a, out) };
            5 ROW_SUM row_sum AIV "out[r] = sum(a[r])"
                (a: In [rows, cols; a_ld], out: Out [rows], rows: Size, cols: Size, a_ld: Size)
                => { reduce::row_sum(a, out) };
            6 MATMUL matmul AIC "c = a @ b"
                (a: In [m, k; a_ld], b: In [k, n; b_ld], c: Out [m, n; c_ld], m: Size, n: Size, k: Size,
                    a_ld: Size, b_ld: Size, c_ld: Size)
                => { matmul::product(a, b, c) };
            7 MATMUL_ACC matmul_acc AIC "c += a @ b"
                (a: In [m, k; a_ld], b: In [k, n; b_ld], c: InOut [m, n; c_ld], m: Size, n: Size, k: Size,
                    a_ld: Size, b_ld: Size, c_ld: Size)
                => { matmul::product_plus(a, b, c, c) };
            8 MATMUL_ADD matmul_add AIC "c = a @ b + d"
                (a: In [m, k; a_ld], b: In [k, n; b_ld], d: In [m, n; d_ld], c: Out [m, n; c_ld],
                    m: Size, n: Size, k: Size, a_ld: Size, b_ld: Size, d_ld: Size, c_ld: Size)
                => { matmul::product_plus(a, b, d, c) };
            9 ATTENTION_QK attention_qk AIC "s = q @ k^T"
                (q: In [rows, head_dim; q_ld], k: In [cols, head_dim; k_ld], s: Out [rows, cols; s_ld],
                    rows: Size, cols: Size, head_dim: Size, q_ld: Size, k_ld: Size, s_ld: Size)
                => { attention::products::product_transposed(q, k, s) };
            10 ATTENTION_SOFTMAX_PARTIAL attention_softmax_partial AIV
                "row_max = max(scale * s), p = e^(scale * s - row_max), row_sum = sum(p)"
                (s: In [rows, cols; s_ld], p: Out [rows, cols; p_ld], row_max: Out [rows], row_sum: Out [rows],
                    rows: Size, cols: Size, s_ld: Size, p_ld: Size, scale: F32)
                => { attention::softmax::softmax(s, p, row_max, row_sum, scale) };
            11 ATTENTION_PV attention_pv AIC "o_new = p @ v"
                (p: In [rows, cols; p_ld], v: In [cols, head_dim; v_ld], o_new: Out [rows, head_dim; o_ld],
                    rows: Size, cols: Size, head_dim: Size, p_ld: Size, v_ld: Size, o_ld: Size)
                => { matmul::product(p, v, o_new) };
            12 ATTENTION_UPDATE attention_update AIV
                "merge a block into the online softmax; flags: 1 first, 2 last (write out = o_acc / l_acc)"
                (m_block: In [rows], l_block: In [rows], o_new: In [rows, head_dim; o_ld], m_acc: InOut [rows],
                    l_acc: InOut [rows], o_acc: InOut [rows, head_dim; o_ld],
                    out: Out [attention::update::written(rows, flags), head_dim; out_ld],
                    rows: Size, head_dim: Size, o_ld: Size, out_ld: Size, flags: Size)
                => { attention::update::update((m_block, l_block, o_new), (m_acc, l_acc, o_acc), out, flags) };
            13 EMPTY_AIC empty_aic AIC "nothing, on a cube core; takes any arguments" (| words) => { let _ = words; };
            14 EMPTY_AIV empty_aiv AIV "nothing, on a vector core; takes any arguments" (| words) => { let _ = words; };
            15 DAG_NODE_AIC dag_node_aic AIC "counters[index] += 1, values[index] = fold of the producers' values"
                (index: Size, seed: Size, values: InOut {up_to(index, 8)}, counters: InOut {up_to(index, 4)},
                    producers: In {elements(n, 4)}, n: Size)
                // SAFETY: the caller keeps the contract of the node.
                => { unsafe { probe::dag_node(index, seed, values, counters, (producers, n)) } };
            16 DAG_NODE_AIV dag_node_aiv AIV "counters[index] += 1, values[index] = fold of the producers' values"
                (index: Size, seed: Size, values: InOut {up_to(index, 8)}, counters: InOut {up_to(index, 4)},
                    producers: In {elements(n, 4)}, n: Size)
                // SAFETY: the caller keeps the contract of the node.
                => { unsafe { probe::dag_node(index, seed, values, counters, (producers, n)) } };
            17 SPIN_AIV spin_aiv AIV "busy for a number of iterations, on a vector core"
                (iterations: Size) => { probe::spin(iterations) };
            18 SPIN_AIC spin_aic AIC "busy for a number of iterations, on a cube core"
                (iterations: Size) => { probe::spin(iterations) };
            19 CHOLESKY_POTRF cholesky_potrf AIV
                "a = l with l @ l^T = a; status: 0, or the row, from 1, whose pivot is not above zero"
                (a: InOut [n, n; a_ld], status: Out {elements(1, 4)}, n: Size, a_ld: Size, first_row: Size)
                // SAFETY: the caller keeps the contract: `status` is one `u32`.
                => { unsafe { args::store(status, 0, cholesky::potrf(a, first_row)) } };
            20 CHOLESKY_TRSM cholesky_trsm AIV "a = a @ l^-T, l lower triangular"
                (l: In [n, n; l_ld], a: InOut [rows, n; a_ld], rows: Size, n: Size, l_ld: Size, a_ld: Size)
                => { cholesky::trsm(l, a) };
            21 CHOLESKY_SYRK cholesky_syrk AIC "c -= a @ a^T, the lower triangle"
                (a: In [n, k; a_ld], c: InOut [n, n; c_ld], n: Size, k: Size, a_ld: Size, c_ld: Size)
                => { cholesky::syrk(a, c) };
            22 CHOLESKY_GEMM cholesky_gemm AIC "c -= a @ b^T"
                (a: In [m, k; a_ld], b: In [n, k; b_ld], c: InOut [m, n; c_ld], m: Size, n: Size, k: Size,
                    a_ld: Size, b_ld: Size, c_ld: Size)
                => { cholesky::gemm(a, b, c) };
            23 NEWTON_START newton_start AIV "x = a^T / (|a|_1 |a|_inf)"
                (a: In [n, n; a_ld], x: Out [n, n; x_ld], n: Size, a_ld: Size, x_ld: Size)
                => { newton::start(a, x) };
            24 NEWTON_RESIDUAL newton_residual AIV
                "e = 1 - p, sum = sum(e^2); the diagonal is in that column of the first row"
                (p: In [rows, cols; p_ld], e: Out [rows, cols; e_ld], sum: Out [1], rows: Size, cols: Size,
                    diagonal: Size, p_ld: Size, e_ld: Size)
                => { newton::residual_into(p, e, sum, diagonal) };
            25 NEWTON_NORM newton_norm AIV "sum = squares[0] + squares[stride] + .."
                (squares: In [n, 1; stride], sum: Out [1], n: Size, stride: Size)
                => { newton::norm(squares, sum) };
            26 COPY copy AIV "out = a"
                (a: In [rows, cols; a_ld], out: Out [rows, cols; out_ld], rows: Size, cols: Size, a_ld: Size,
                    out_ld: Size)
                => { layer::copy(a, out) };
            27 RMS_NORM rms_norm AIV "out[r] = weight * x[r] / sqrt(mean(x[r]^2) + epsilon)"
                (x: In [rows, cols; x_ld], weight: In [cols], out: Out [rows, cols; out_ld], rows: Size,
                    cols: Size, x_ld: Size, out_ld: Size, epsilon: F32)
                => { layer::rms_norm(x, weight, out, epsilon) };
            28 ROPE rope AIV "rotary embedding: rotates x[r][i], x[r][i + head_dim / 2]"
                (x: In [rows, head_dim; x_ld], cos: In [head_dim / 2], sin: In [head_dim / 2],
                    out: Out [rows, head_dim; out_ld], rows: Size, head_dim: Size, x_ld: Size, out_ld: Size)
                => { layer::rope(x, cos, sin, out) };
            29 SILU_MUL silu_mul AIV "out = gate / (1 + e^-gate) * up"
                (gate: In [rows, cols; gate_ld], up: In [rows, cols; up_ld], out: Out [rows, cols; out_ld],
                    rows: Size, cols: Size, gate_ld: Size, up_ld: Size, out_ld: Size)
                => { layer::gated(gate, up, out) };
            30 MOE_ROUTE moe_route AIV "the top_k experts of each token, and the softmax of their logits"
                (logits: In [tokens, n_experts; logits_ld], experts: Out {elements(tokens.saturating_mul(top_k), 4)}, weights: Out [tokens, top_k; top_k],
                    tokens: Size, n_experts: Size, top_k: Size, logits_ld: Size)
                // SAFETY: the caller keeps the contract of `route`.
                => { unsafe { experts::route(logits, experts, weights, top_k) } };
            31 MOE_LIST moe_list AIV "the entries of experts that are expert"
                (experts: In {elements(entries, 4)}, list: Out, count: Out {elements(1, 4)}, entries: Size, expert: Size)
                // SAFETY: the caller keeps the contract of `list`.
                => { unsafe { experts::list(experts, list, count, entries, expert) } };
            32 MOE_GATHER moe_gather AIV "out[i] = x[list[i] / top_k], ran += 1"
                (x: In [tokens, cols; x_ld], list: In, count: In {elements(1, 4)}, ran: InOut {elements(1, 4)}, out: Out, tokens: Size, cols: Size,
                    top_k: Size, x_ld: Size, out_ld: Size)
                // SAFETY: the caller keeps the contract of `gather`.
                => { unsafe { experts::gather(x, (list, count), ran, [out, cols, out_ld], top_k) } };
            33 MOE_MATMUL moe_matmul AIC "c = a @ b, for *count rows"
                (a: In, b: In [k, n; b_ld], c: Out, count: In {elements(1, 4)}, n: Size, k: Size, a_ld: Size, b_ld: Size,
                    c_ld: Size)
                // SAFETY: the caller keeps the contract of `product`.
                => { unsafe { experts::product([a, k, a_ld], b, [c, n, c_ld], count) } };
            34 MOE_SILU_MUL moe_silu_mul AIV "out = gate / (1 + e^-gate) * up, for *count rows"
                (gate: In, up: In, out: Out, count: In {elements(1, 4)}, cols: Size, gate_ld: Size, up_ld: Size, out_ld: Size)
                // SAFETY: the caller keeps the contract of `gated`.
                => { unsafe { experts::gated([gate, gate_ld], [up, up_ld], [out, out_ld], cols, count) } };
            35 MOE_SCATTER moe_scatter AIV "out[list[i] / top_k] += weights[list[i]] * y[i]"
                (y: In, list: In, count: In {elements(1, 4)}, weights: In, out: InOut [tokens, cols; out_ld], tokens: Size,
                    cols: Size, top_k: Size, y_ld: Size, out_ld: Size)
                // SAFETY: the caller keeps the contract of `scatter`.
                => { unsafe { experts::scatter([y, cols, y_ld], (list, count), weights, out, top_k) } };
            36 DECODE_VALUE decode_value AIC "v = a @ b; with decode_rotate on the vector cores of the cluster"
                (a: In [rows, inner; a_ld], b: In [inner, head_dim; b_ld], v: Out [rows, head_dim; ld], q: InOut,
                    k: InOut, positions: In, angles: In, rows: Size, head_dim: Size, inner: Size, group: Size,
                    a_ld: Size, b_ld: Size, ld: Size)
                => { matmul::product(a, b, v) };
            37 DECODE_ROTATE decode_rotate AIV
                "rope of q on the first vector core of a block, of k on the second, by the rows' positions"
                (a: In, b: In, v: Out, q: InOut, k: InOut, positions: In, angles: In, rows: Size, head_dim: Size,
                    inner: Size, group: Size, a_ld: Size, b_ld: Size, ld: Size; context)
                // SAFETY: the caller keeps the contract of `rotate`.
                => { unsafe { layer::rotate((q, k), (positions, angles), [rows, head_dim, group, ld], context) } };
            38 PART_AIC part_aic AIC
                "folds into the cell of its part, on a cube core; group: parts that wait for each other"
                (cells: InOut {elements(context.saturating_mul(parts::BLOCK_WORDS), 8)}, salt: Size, group: Size; context)
                // SAFETY: the caller keeps the contract of `part`.
                => { unsafe { parts::part(cells, salt, group, context, 0) } };
            39 PART_AIV part_aiv AIV
                "folds into the cell of its part, on a vector core; group: parts that wait for each other"
                (cells: InOut {elements(context.saturating_mul(parts::BLOCK_WORDS), 8)}, salt: Size, group: Size; context)
                // SAFETY: the caller keeps the contract of `part`.
                => { unsafe { parts::part(cells, salt, group, context, 1) } };
            40 TILE_AIC tile_aic AIC
                "executes the tile kernel of an expanded plan, on a cube core; its operands follow these words"
                (code: In {elements(task::code_bytes(code_bytes), 1)}, code_bytes: Size, epitaph: InOut, scratch: InOut, forms: Size, descriptors: In | words)
                // SAFETY: the caller keeps the contract of `run`.
                => { unsafe { tile_task::run(words) } };
            41 TILE_AIV tile_aiv AIV
                "executes the tile kernel of an expanded plan, on a vector core; its operands follow these words"
                (code: In {elements(task::code_bytes(code_bytes), 1)}, code_bytes: Size, epitaph: InOut, scratch: InOut, forms: Size, descriptors: In | words)
                // SAFETY: the caller keeps the contract of `run`.
                => { unsafe { tile_task::run(words) } };
            42 TRANSFER transfer AIV "nothing: the transfer engine moves bytes between the devices of a group, and no core does"
                () => {};
            43 REDUCE reduce AIV "out = b[0] op .. op a op .. op b[k - 1], of any element type; n: elements of a block; how: the type, the operation from bit 8 on, all elements from bit 16 on; parts: k, and how many of them come before a from bit 32 on"
                (a: In {combine::elements(n, how, context)}, b: In {combine::elements_of_parts(n, how, parts, context)}, out: Out {combine::elements(n, how, context)}, n: Size, how: Size, parts: Size; context)
                // SAFETY: the caller keeps the contract of `combine`.
                => { unsafe { combine::combine([a, b, out], n, (how, parts), context) } };
        }
    };
}
