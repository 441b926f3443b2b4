//! One number that stands for everything that was ever written, in order.
//!
//! Two histories that differ in any row have different chains, so a replica notices when the database is not the one it knew:
//! restored from a backup, or taken over by a standby that had not seen everything.

/// The chain after one more row, of which the checksum covers everything.
pub(super) fn link(chain: i64, crc: u32) -> i64 {
    // A round of a well-known mixer: every bit of both counts in every bit of the result.
    // One more than the checksum, so that a row whose checksum is zero changes the chain of nothing too.
    let row = (u64::from(crc) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut mixed = chain.cast_unsigned().rotate_left(32) ^ row;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_count() {
        let chain = |crcs: &[u32]| crcs.iter().fold(0, |chain, crc| link(chain, *crc));
        let chains =
            [chain(&[1, 2, 3]), chain(&[1, 3, 2]), chain(&[1, 2]), chain(&[1, 2, 4]), chain(&[0, 1, 2, 3])];
        for (index, one) in chains.iter().enumerate() {
            assert!(!chains[index + 1..].contains(one), "{chains:?}");
        }
    }
}
