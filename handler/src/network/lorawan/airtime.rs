//! Time on air of frames.

/// The preamble and the start of a LoRa frame, in quarters of a symbol.
const PREAMBLE_QUARTERS: u64 = 49;

/// The time on air of a LoRa frame, in nanoseconds, at a data rate such as `SF7BW125` and a coding rate such as `4/5`;
/// zero if they are unknown.
pub(crate) fn of_lora(length: usize, data_rate: &str, coding_rate: &str) -> u64 {
    parse(data_rate, coding_rate).map_or(0, |(factor, khz, parity)| {
        let slow = u64::from(factor >= 11 && khz == 125);
        let bits = (8 * length as u64 + 44).saturating_sub(4 * factor);
        let symbols = 8 + bits.div_ceil(4 * (factor - 2 * slow)) * (parity + 4);
        (4 * symbols + PREAMBLE_QUARTERS) * (1_000_000 << factor) / (4 * khz)
    })
}

/// The time on air of an FSK frame, in nanoseconds; zero without a bit rate.
pub(crate) fn of_fsk(length: usize, bit_rate: u32) -> u64 {
    ((length as u64 + 11) * 8 * 1_000_000_000).checked_div(bit_rate.into()).unwrap_or_default()
}

/// Spreading factor, bandwidth in kHz, and the parity of the coding rate.
fn parse(data_rate: &str, coding_rate: &str) -> Option<(u64, u64, u64)> {
    let (factor, bandwidth) = data_rate.strip_prefix("SF")?.split_once("BW")?;
    let (factor, khz) = (factor.parse().ok()?, bandwidth.parse().ok()?);
    let parity = coding_rate.strip_prefix("4/")?.parse::<u64>().ok()?.checked_sub(4)?;
    ((6..=12).contains(&factor) && [125, 250, 500].contains(&khz) && parity <= 4).then_some((factor, khz, parity))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: Time on air
    #[test]
    fn times_are_those_of_v2() {
        // The first is in the messages of v2; the others follow from the formula of Semtech's AN1200.13.
        assert_eq!(of_lora(13, "SF7BW125", "4/5"), 46_336_000);
        assert_eq!(of_lora(13, "SF12BW125", "4/5"), 1_155_072_000);
        assert_eq!(of_lora(13, "SF7BW250", "4/5"), 23_168_000);
        assert_eq!(of_fsk(14, 50_000), 4_000_000);
        for unknown in [("", ""), ("SF7", "4/5"), ("SF7BW0", "4/5"), ("SF70BW125", "4/5"), ("SF7BW125", "5/4")] {
            assert_eq!(of_lora(13, unknown.0, unknown.1), 0, "{unknown:?}");
        }
        assert_eq!(of_fsk(14, 0), 0);
    }
}
