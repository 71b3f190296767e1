//! Frequency plans as configuration of Semtech's packet forwarder for the SX1301.

use serde_json::{Map, Value, json};

use super::FrequencyPlan;

/// The number of multi-SF LoRa channels of the chip.
const CHANNELS: usize = 8;
/// The RSSI offset of Semtech's reference design, in dB.
const RSSI_OFFSET: f64 = -166.0;
const RADIO: &str = "SX1257";
/// In Hz.
const FSK_BANDWIDTH: u32 = 125_000;
/// PA gain, mixer gain and output power in dBm for Semtech's reference design.
const POWERS: [(u8, u8, i8); 16] = [
    (0, 8, -6),
    (0, 10, -3),
    (0, 12, 0),
    (1, 8, 3),
    (1, 10, 6),
    (1, 12, 10),
    (1, 13, 11),
    (2, 9, 12),
    (1, 15, 13),
    (2, 10, 14),
    (2, 11, 16),
    (3, 9, 20),
    (3, 10, 23),
    (3, 11, 25),
    (3, 12, 26),
    (3, 14, 27),
];

impl FrequencyPlan {
    /// The configuration, with the TX gain table unless the gateway has its own.
    pub(crate) fn forwarder(&self, with_gains: bool) -> Value {
        let mut chip = Map::new();
        chip.insert("lorawan_public".to_owned(), json!(true));
        chip.insert("clksrc".to_owned(), json!(1));
        chip.insert("antenna_gain".to_owned(), json!(0));
        for radio in 0..self.radios.len() {
            chip.insert(format!("radio_{radio}"), self.radio(radio));
        }
        for channel in 0..CHANNELS {
            chip.insert(format!("chan_multiSF_{channel}"), self.channel(self.channels.get(channel).copied()));
        }
        chip.insert("chan_Lora_std".to_owned(), self.lora_channel());
        chip.insert("chan_FSK".to_owned(), self.fsk_channel());
        if with_gains {
            for (index, (pa_gain, mix_gain, rf_power)) in POWERS.into_iter().enumerate() {
                let gains = json!({"pa_gain": pa_gain, "mix_gain": mix_gain, "rf_power": rf_power, "dig_gain": 0});
                chip.insert(format!("tx_lut_{index}"), gains);
            }
        }
        json!({ "SX1301_conf": chip })
    }

    fn radio(&self, radio: usize) -> Value {
        let [tx_freq_min, tx_freq_max] = self.tx;
        let used = self.frequencies().any(|freq| self.tuned(freq).0 == radio);
        let mut settings = json!({
            "enable": used || radio == 0, "type": RADIO, "freq": self.radios[radio], "rssi_offset": RSSI_OFFSET,
            "tx_enable": radio == 0,
        });
        if radio == 0 {
            settings["tx_freq_min"] = json!(tx_freq_min);
            settings["tx_freq_max"] = json!(tx_freq_max);
        }
        settings
    }

    fn channel(&self, freq: Option<u32>) -> Value {
        let Some(freq) = freq else { return json!({"enable": false}) };
        let (radio, offset) = self.tuned(freq);
        json!({"enable": true, "radio": radio, "if": offset})
    }

    fn lora_channel(&self) -> Value {
        let mut settings = self.channel(self.lora.as_ref().map(|channel| channel.freq));
        if let Some(channel) = &self.lora {
            settings["bandwidth"] = json!(channel.bandwidth);
            settings["spread_factor"] = json!(channel.spread_factor);
        }
        settings
    }

    fn fsk_channel(&self) -> Value {
        let mut settings = self.channel(self.fsk.as_ref().map(|channel| channel.freq));
        if let Some(channel) = &self.fsk {
            settings["bandwidth"] = json!(FSK_BANDWIDTH);
            settings["datarate"] = json!(channel.datarate);
        }
        settings
    }

    fn frequencies(&self) -> impl Iterator<Item = u32> {
        let fast = self.lora.iter().map(|channel| channel.freq);
        self.channels.iter().copied().chain(fast).chain(self.fsk.iter().map(|channel| channel.freq))
    }

    /// The index of the nearest radio, and the offset of `freq` from its center frequency in Hz.
    fn tuned(&self, freq: u32) -> (usize, i64) {
        let offset = |radio: usize| i64::from(freq) - i64::from(self.radios[radio]);
        let radio = usize::from(offset(1).abs() < offset(0).abs());
        (radio, offset(radio))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::FrequencyPlans;
    use super::*;

    /// Maximum offset from the center frequency of a radio, in Hz.
    const OFFSET_MAX: i64 = 400_000;

    #[test]
    fn every_channel_is_within_reach_of_a_radio_and_inside_the_band_of_its_name() {
        let plans = FrequencyPlans::read().unwrap();
        for plan in plans.iter() {
            let different: BTreeSet<_> = plan.channels.iter().collect();
            assert!((1..=CHANNELS).contains(&plan.channels.len()) && different.len() == plan.channels.len());
            for freq in plan.frequencies() {
                assert!(plan.tuned(freq).1.abs() <= OFFSET_MAX, "{} {freq}", plan.id);
            }
            let mut bounds = plan.id.split('_').skip(1).map(|text| text.parse::<u32>().unwrap() * 1_000_000);
            if let (Some(low), Some(high)) = (bounds.next(), bounds.next()) {
                // The band called 923 extends slightly above its name.
                let band = low..=high + 500_000;
                assert!(plan.frequencies().chain(plan.tx).all(|freq| band.contains(&freq)), "{}", plan.id);
            }
        }
    }

    #[test]
    fn ids_and_short_names_mean_one_plan() {
        let plans = FrequencyPlans::read().unwrap();
        let texts: Vec<_> = plans.iter().flat_map(|plan| plan.aliases.iter().chain([&plan.id])).collect();
        assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), texts.len());
        assert_eq!(plans.id_of("EU").unwrap(), "EU_863_870");
        assert!(plans.id_of("").is_err() && plans.get("EU").is_err());
    }
}
