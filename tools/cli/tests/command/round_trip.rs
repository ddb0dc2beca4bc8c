//! A user's own attention: inputs from files, the result to a file, compared with what the test computes.

use crate::files::Files;
use crate::pto::pto;

const BATCH: usize = 3;
const HEADS: usize = 6;
const KV_HEADS: usize = 2;
const DIM: usize = 8;
const BLOCK: usize = 4;
const BLOCKS: usize = 9;
const TABLE: [[i32; 4]; BATCH] = [[7, 2, 8, -1], [0, -1, -1, -1], [5, 3, 2, 6]];
const LENS: [i32; BATCH] = [10, 1, 16];

struct Cache {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// Numbers that look random and are not.
fn waves(count: usize, step: f32) -> Vec<f32> {
    (0..u16::try_from(count).unwrap()).map(|i| (f32::from(i) * step).sin()).collect()
}

impl Cache {
    fn new() -> Self {
        let cache = BLOCKS * BLOCK * KV_HEADS * DIM;
        Self { q: waves(BATCH * HEADS * DIM, 0.7), k: waves(cache, 1.3), v: waves(cache, 2.1) }
    }

    fn token<'a>(&self, tensor: &'a [f32], request: usize, head: usize, token: usize) -> &'a [f32] {
        let block = usize::try_from(TABLE[request][token / BLOCK]).unwrap();
        let kv_head = head / (HEADS / KV_HEADS);
        &tensor[((block * BLOCK + token % BLOCK) * KV_HEADS + kv_head) * DIM..][..DIM]
    }

    fn attention(&self, request: usize, head: usize) -> Vec<f64> {
        let q = &self.q[(request * HEADS + head) * DIM..][..DIM];
        let tokens = 0..usize::try_from(LENS[request]).unwrap();
        let weight = |token| {
            let k = self.token(&self.k, request, head, token);
            let dot: f64 = q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum();
            (dot / (DIM as f64).sqrt()).exp()
        };
        let total: f64 = tokens.clone().map(weight).sum();
        let element = |i| -> f64 {
            let v = |token| f64::from(self.token(&self.v, request, head, token)[i]);
            tokens.clone().map(|token| weight(token) * v(token)).sum::<f64>() / total
        };
        (0..DIM).map(element).collect()
    }
}

#[test]
fn attention_over_files() {
    let (files, cache) = (Files::new(), Cache::new());
    let u64s = |extents: &[usize]| extents.iter().map(|e| *e as u64).collect::<Vec<_>>();
    files.put("q", &u64s(&[BATCH, HEADS, DIM]), &cache.q);
    files.put("k", &u64s(&[BLOCKS, BLOCK, KV_HEADS, DIM]), &cache.k);
    files.put("v", &u64s(&[BLOCKS, BLOCK, KV_HEADS, DIM]), &cache.v);
    files.put("block_table", &u64s(&[BATCH, 4]), TABLE.as_flattened());
    files.put("context_lens", &u64s(&[BATCH]), &LENS);
    let inputs = ["q", "k", "v", "block_table", "context_lens"]
        .map(|name| format!("--input={}", files.option(name)));
    let output = format!("--output={}", files.option("out"));

    for runtime in ["host_build_graph", "aicpu_build_graph"] {
        let mut args = vec!["run", "paged_attention", "--runtime", runtime, &output];
        args.extend(inputs.iter().map(String::as_str));
        // No parameter is given: the shapes say everything.
        let answer = pto(&args, 0);
        assert!(answer.stdout.contains("kv_heads 2") && answer.stdout.contains("PASS"));

        let (shape, out) = files.get("out");
        assert_eq!(shape, u64s(&[BATCH, HEADS, DIM]));
        for (row, out) in out.chunks(DIM).enumerate() {
            let expected = cache.attention(row / HEADS, row % HEADS);
            for (found, expected) in out.iter().zip(expected) {
                assert!((f64::from(*found) - expected).abs() < 1e-5, "row {row} under {runtime}");
            }
        }
        std::fs::remove_file(files.path("out")).unwrap();
    }
}

#[test]
fn matmul_over_files_takes_its_sizes_from_them() {
    let files = Files::new();
    files.put("a", &[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    files.put("b", &[3, 1], &[1.0_f32, 0.0, -1.0]);
    files.put("d", &[2, 1], &[10.0_f32, 20.0]);
    let [a, b, d, c] = ["a", "b", "d", "c"].map(|name| files.option(name));
    let args = [
        "run", "matmul", "--input", &a, "--input", &b, "--input", &d, "--output", &c, "--param",
        "tile_k=2",
    ];
    pto(&args, 0);
    assert_eq!(files.get("c"), (vec![2, 1], vec![8.0, 18.0]));
}
