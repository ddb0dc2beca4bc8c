//! The three programs, as text, for given sizes.

use std::format;
use std::string::String;

use super::sizes::TrainingSizes;

const HEAD: &str = "  schedule round_robin workers 1 window 8192 stall\n";

/// `Y = tanh(X W)`.
pub(super) fn forward(sizes: &TrainingSizes) -> String {
    let TrainingSizes { batch: b, inner: k, outer: n, tile: t, .. } = *sizes;
    let (inner_tiles, outer_tiles) = (k / t, n / t);
    format!(
        "workload forward {{
{HEAD}  tensor X : f32[{b}, {k}]
  tensor W : f32[{k}, {n}]
  tensor Y : f32[{b}, {n}]
  kernel clear(y: out f32[{b}, {t}]) {{
    %0 = zeros : f32[{b}, {t}]
    store y, %0
  }}
  kernel add_product(x: in f32[{b}, {t}], w: in f32[{t}, {t}], y: inout f32[{b}, {t}]) {{
    %0 = load y : f32[{b}, {t}]
    %1 = load x : f32[{b}, {t}]
    %2 = load w : f32[{t}, {t}]
    %3 = matmul %1, %2 acc %0 : f32[{b}, {t}]
    store y, %3
  }}
  kernel activate(y: inout f32[{b}, {t}]) {{
    %0 = load y : f32[{b}, {t}]
    %1 = tanh %0 : f32[{b}, {t}]
    store y, %1
  }}
  do parallel j in dense {outer_tiles} {{
    sequential {{
      clear[j](y = Y[0 for {b}, j * {t} for {t}])
      each k in dense {inner_tiles} {{
        add_product[j, k](x = X[0 for {b}, k * {t} for {t}], w = W[k * {t} for {t}, j * {t} for {t}], y = Y[0 for {b}, j * {t} for {t}])
      }}
      activate[j](y = Y[0 for {b}, j * {t} for {t}])
    }}
  }}
}}"
    )
}

/// The loss of this round, and the gradient of the weights. `XT` is the transposed `X`, `C` says which round it is.
pub(super) fn backward(sizes: &TrainingSizes) -> String {
    let TrainingSizes { batch: b, inner: k, outer: n, tile: t, iterations, .. } = *sizes;
    let (inner_tiles, outer_tiles) = (k / t, n / t);
    let elements = b * n;
    format!(
        "workload backward {{
{HEAD}  tensor Y : f32[{b}, {n}]
  tensor T : f32[{b}, {n}]
  tensor XT : f32[{k}, {b}]
  tensor C : i32[1, 1]
  tensor D : f32[{b}, {n}]
  tensor P : f32[{outer_tiles}, 1]
  tensor L : f32[{iterations}, 1]
  tensor G : f32[{k}, {n}]
  kernel delta(y: in f32[{b}, {t}], t: in f32[{b}, {t}], d: out f32[{b}, {t}], p: out f32[1, 1]) {{
    %0 = load y : f32[{b}, {t}]
    %1 = load t : f32[{b}, {t}]
    %2 = sub %0, %1 : f32[{b}, {t}]
    %3 = mul %2, %2 : f32[{b}, {t}]
    %4 = rowsum %3 : f32[{b}, 1]
    %5 = colsum %4 : f32[1, 1]
    %6 = mul %0, %0 : f32[{b}, {t}]
    %7 = mul %2, %6 : f32[{b}, {t}]
    %8 = sub %2, %7 : f32[{b}, {t}]
    store d, %8
    store p, %5
  }}
  kernel gradient(x: in f32[{t}, {b}], d: in f32[{b}, {t}], g: out f32[{t}, {t}]) {{
    %0 = load x : f32[{t}, {b}]
    %1 = load d : f32[{b}, {t}]
    %2 = matmul %0, %1 : f32[{t}, {t}]
    store g, %2
  }}
  kernel mean(p: in f32[{outer_tiles}, 1], l: out f32[1, 1]) {{
    %0 = load p : f32[{outer_tiles}, 1]
    %1 = colsum %0 : f32[1, 1]
    %2 = constant {elements}.0 : f32
    %3 = div %1, %2 by one : f32[1, 1]
    store l, %3
  }}
  do sequential {{
    parallel j in dense {outer_tiles} {{
      delta[j](y = Y[0 for {b}, j * {t} for {t}], t = T[0 for {b}, j * {t} for {t}], d = D[0 for {b}, j * {t} for {t}], p = P[j for 1])
    }}
    parallel k in dense {inner_tiles} {{
      parallel j in dense {outer_tiles} {{
        gradient[k, j](x = XT[k * {t} for {t}], d = D[0 for {b}, j * {t} for {t}], g = G[k * {t} for {t}, j * {t} for {t}])
      }}
    }}
    slot 0 from C at (0, 0)
    parallel i in dense 1 {{
      mean[i](p = P, l = L[slot_i64(0) for 1])
    }}
  }}
}}"
    )
}

/// `W = W - rate G`, and the next round. With tiles of `(rows, cols)` in memory both matrices stand as tiles.
pub(super) fn optimiser(sizes: &TrainingSizes, stored_cols: Option<u64>) -> String {
    let TrainingSizes { inner: k, outer: n, tile: t, .. } = *sizes;
    let (shape, [rows, cols], loops, view) = match stored_cols {
        None => (
            format!("{k}, {n}"),
            [t, t],
            [n / t, k / t],
            format!("k * {t} for {t}, j * {t} for {t}"),
        ),
        Some(cols) => {
            let rows = (t * t / cols).min(k);
            let shape = format!("{}, {k}, {cols}", n / cols);
            (shape, [rows, cols], [n / cols, k / rows], format!("j, k * {rows} for {rows}"))
        }
    };
    let [outer_loop, inner_loop] = loops;
    format!(
        "workload optimiser {{
{HEAD}  tensor W : f32[{shape}]
  tensor G : f32[{shape}]
  tensor C : i32[1, 1]
  kernel step(w: inout f32[{rows}, {cols}], g: in f32[{rows}, {cols}], rate: f32) {{
    %0 = load w : f32[{rows}, {cols}]
    %1 = load g : f32[{rows}, {cols}]
    %2 = scalar rate : f32
    %3 = mul %1, %2 by one : f32[{rows}, {cols}]
    %4 = sub %0, %3 : f32[{rows}, {cols}]
    store w, %4
  }}
  kernel count(c: inout i32[1, 1]) {{
    %0 = load c : i32[1, 1]
    %1 = constant 1 : i32
    %2 = add %0, %1 by one : i32[1, 1]
    store c, %2
  }}
  do sequential {{
    parallel j in dense {outer_loop} {{
      parallel k in dense {inner_loop} {{
        step[j, k](w = W[{view}], g = G[{view}], rate = number(symbol rate))
      }}
    }}
    parallel i in dense 1 {{
      count[i](c = C)
    }}
  }}
}}"
    )
}
