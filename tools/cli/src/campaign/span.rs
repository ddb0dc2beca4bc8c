//! Ranges of seeds.

use std::ops::Range;

/// What is left of `all` without what was tried, in ascending order.
pub(super) fn left(all: &Range<u64>, tried: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut tried: Vec<_> = tried.iter().filter(|one| !one.is_empty()).cloned().collect();
    tried.sort_by_key(|one| one.start);
    let (mut left, mut next) = (Vec::new(), all.start);
    for one in tried {
        if one.start > next {
            left.push(next..one.start.min(all.end));
        }
        next = next.max(one.end);
    }
    left.push(next..all.end);
    left.retain(|one| !one.is_empty());
    left
}

/// Turns of at most `seeds` seeds each.
pub(super) fn turns(left: &[Range<u64>], seeds: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    left.iter().flat_map(move |range| {
        let count = (range.end - range.start).div_ceil(seeds);
        (0..count).map(move |turn| {
            let start = range.start + turn * seeds;
            start..range.end.min(start.saturating_add(seeds))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{left, turns};

    #[test]
    fn what_is_left_and_what_was_tried_are_all_seeds_once() {
        let tried = [40..50, 10..20, 20..22, 45..48, 90..90];
        assert_eq!(left(&(0..100), &tried), [0..10, 22..40, 50..100]);
        assert_eq!(left(&(0..100), &[0..60, 60..100]), []);
        assert_eq!(left(&(5..9), &[0..7, 7..8]).first(), Some(&(8..9)));
        let cut: Vec<_> = turns(&[0..10, 22..40], 8).collect();
        assert_eq!(cut, [0..8, 8..10, 22..30, 30..38, 38..40]);
    }
}
