//! Symbols: a name as 64 bits, the FNV-1a hash of its UTF-8 bytes (the scheme of PTO-WSP v9).

const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01B3;

/// The symbol of `name`.
#[must_use]
pub const fn symbol(name: &str) -> u64 {
    extend(OFFSET, name.as_bytes())
}

/// Continues a hash over `bytes`.
#[must_use]
pub const fn extend(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(PRIME);
        i += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::symbol;

    #[test]
    fn known_answers() {
        assert_eq!(symbol(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(symbol("b"), 0xaf63_df4c_8601_f1a5);
        assert_eq!(symbol("mask"), 0x1f37_5fa2_ce7b_1849);
        assert_eq!(symbol("__pto_wsp_channel_latency_cycles"), 0xea52_ceaf_a1c2_f466);
    }
}
