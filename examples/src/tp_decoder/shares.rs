//! What one rank has of the tensors of a layer: its heads, and its columns of the MLP.

use std::vec::Vec;

use crate::decoder_layer::inputs::{DecoderShape, DecoderTensors};
use crate::host::job::index;
use crate::host::{Error, GroupRank};
use crate::paged_attention::inputs::AttentionShape as Attention;

/// The shape of one rank's layer.
///
/// # Errors
/// Heads of the cache, or columns of the MLP, that so many ranks cannot share.
pub(crate) fn shape(whole: &DecoderShape, member: GroupRank) -> Result<DecoderShape, Error> {
    let kv_heads = member.share("kv_heads", whole.attention.kv_heads)?;
    let intermediate = member.share("intermediate", whole.intermediate)?;
    Ok(DecoderShape {
        attention: Attention { kv_heads, ..whole.attention },
        intermediate,
        ..*whole
    })
}

/// One rank's share of rows or columns, of which there are `extent` in all.
#[derive(Clone, Copy)]
struct Share {
    first: usize,
    length: usize,
}

impl Share {
    fn of(member: GroupRank, extent: usize) -> Self {
        let length = extent / member.size as usize;
        Self { first: member.rank as usize * length, length }
    }

    /// The share of every row of a matrix, whose rows are `cols` wide, from column `from` on.
    fn columns(self, matrix: &[f32], cols: usize, from: usize) -> impl Iterator<Item = &[f32]> {
        matrix.chunks(cols).map(move |row| &row[from + self.first..][..self.length])
    }

    fn rows(self, matrix: &[f32], cols: usize) -> Vec<f32> {
        matrix[self.first * cols..][..self.length * cols].to_vec()
    }
}

/// The tensors of one rank's layer.
pub(crate) fn tensors(
    whole: &DecoderTensors,
    shape: &DecoderShape,
    member: GroupRank,
) -> DecoderTensors {
    let attention = &shape.attention;
    let [dim, hidden, inner, kv] =
        [attention.head_dim, shape.hidden, shape.intermediate, attention.kv_heads]
            .map(|size| index(size.get()));
    let heads = index(attention.heads());
    let (queries, keys, inner_share) =
        (Share::of(member, heads * dim), Share::of(member, kv * dim), Share::of(member, inner));
    let [wqkv, wo, wg, wu, wd] = &whole.weights;
    let width = (heads + 2 * kv) * dim;
    let q = queries.columns(wqkv, width, 0);
    let k = keys.columns(wqkv, width, heads * dim);
    let v = keys.columns(wqkv, width, (heads + kv) * dim);
    let own = q.zip(k).zip(v).flat_map(|((q, k), v)| [q, k, v].concat()).collect();
    let columns = |matrix| inner_share.columns(matrix, inner, 0).flatten().copied().collect();
    let weights =
        [own, queries.rows(wo, hidden), columns(wg), columns(wu), inner_share.rows(wd, hidden)];
    let cache = |cache: &[f32]| keys.columns(cache, kv * dim, 0).flatten().copied().collect();
    DecoderTensors { weights, k: cache(&whole.k), v: cache(&whole.v), ..whole.clone() }
}
