//! Symbols: values that are bound by name when a workload runs.

/// The id of a symbol: FNV-1a of its name in UTF-8, 64 bits.
#[must_use]
pub fn id(name: &str) -> u64 {
    const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01B3;
    name.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::id;

    #[test]
    fn ids_are_those_of_the_facts() {
        for (name, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("b", 0xaf63_df4c_8601_f1a5),
            ("i", 0xaf63_e44c_8601_fa24),
            ("e", 0xaf63_d84c_8601_e5c0),
            ("mask", 0x1f37_5fa2_ce7b_1849),
            ("scale_s", 0x73d5_ede0_b739_2c9b),
            ("__pto_wsp_channel_latency_cycles", 0xea52_ceaf_a1c2_f466),
        ] {
            assert_eq!(id(name), expected, "{name}");
        }
    }
}
