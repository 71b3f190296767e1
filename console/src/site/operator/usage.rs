//! An owner's use of a budget, with bytes in units that people read.

use crate::{site::page::shown, status::OwnerUse};

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// A row of the table of owners.
pub(super) struct Usage {
    pub(super) owner: String,
    pub(super) budget: String,
    pub(super) percent: u64,
    pub(super) used: String,
    pub(super) share: String,
    pub(super) used_by_all: String,
    pub(super) total: String,
}

impl From<OwnerUse> for Usage {
    fn from(usage: OwnerUse) -> Self {
        let OwnerUse { owner, budget, used, share, percent, used_by_all, total } = usage;
        let amount = if budget.ends_with("bytes") { bytes } else { |number: u64| number.to_string() };
        let [used, share, used_by_all, total] = [used, share, used_by_all, total].map(amount);
        Self { owner: shown(&owner), budget: budget.replace('_', " "), percent, used, share, used_by_all, total }
    }
}

/// A size in the largest unit of which it has at least one.
fn bytes(size: u64) -> String {
    let power = (size.max(1).ilog2() / 10).min(4);
    let unit = UNITS.get(power as usize).copied().unwrap_or_default();
    if power == 0 {
        return format!("{size} {unit}");
    }
    format!("{:.1} {unit}", size as f64 / (1_u64 << (10 * power)) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_largest_unit_that_fits() {
        let shown = [0, 1023, 1024, 1536, 16 << 30, 3 << 40, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "16.0 GiB", "3.0 TiB", "16777216.0 TiB"]);
    }

    #[test]
    fn only_budgets_of_bytes_have_units() {
        let usage = |budget: &str| {
            let usage = OwnerUse {
                owner: "user alice".to_owned(),
                budget: budget.to_owned(),
                used: 2048,
                share: 4096,
                percent: 50,
                used_by_all: 2048,
                total: 8192,
            };
            Usage::from(usage)
        };
        assert_eq!((usage("stored_bytes").used.as_str(), usage("http_connections").used.as_str()), ("2.0 KiB", "2048"));
        assert_eq!(usage("http_connections").budget, "http connections");
    }
}
