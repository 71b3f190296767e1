//! Limits of functions: those that are set, and those of the past, within which an uplink runs again.

use std::sync::Arc;

use runtime::{LimitOverrides, Limits, LimitsByName, LimitsHash};

/// Limits with their hash, which takes too long to compute for every message.
#[derive(Clone)]
pub(crate) struct HashedLimits {
    pub(super) limits: Arc<Limits>,
    pub(super) hash: LimitsHash,
}

/// A limit that is lower now than it was when an uplink came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LowerLimit {
    pub(crate) name: String,
    pub(crate) then: u64,
    pub(crate) now: u64,
}

impl HashedLimits {
    pub(super) fn new(limits: Arc<Limits>) -> Self {
        Self { hash: LimitsHash::of(&limits), limits }
    }

    /// The first bytes of the hash, as history has them.
    pub(crate) fn prefix(&self) -> [u8; 8] {
        self.hash.prefix()
    }

    pub(crate) fn by_name(&self) -> LimitsByName {
        self.limits.by_name()
    }

    /// The limits of the past, if these allow as much. A limit that did not exist then is as it is here.
    ///
    /// Otherwise the limits that are lower here; none if one of them does not exist any more.
    pub(crate) fn lowered_to(&self, then: LimitsByName) -> Result<Self, Vec<LowerLimit>> {
        let here = self.by_name();
        let lower = then.iter().filter_map(|(name, then)| {
            let now = *here.get(name)?;
            (now < *then).then(|| LowerLimit { name: name.clone(), then: *then, now })
        });
        let lower: Vec<_> = lower.collect();
        if !lower.is_empty() {
            return Err(lower);
        }
        let limits = LimitOverrides::from(then).apply(&self.limits).map_err(|_| Vec::new())?;
        Ok(Self::new(Arc::new(limits)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(fuel: u64, warnings_max: u32) -> HashedLimits {
        HashedLimits::new(Arc::new(Limits { fuel, warnings_max, ..Limits::default() }))
    }

    #[test]
    fn limits_of_the_past_apply_where_as_much_is_allowed_now() {
        let (then, now) = (limits(100, 5), limits(200, 5));
        let applied = now.lowered_to(then.by_name()).unwrap();
        assert_eq!((applied.prefix(), applied.limits.fuel), (then.prefix(), 100));
        let mut older = then.by_name();
        older.remove("warnings_max");
        assert_eq!(limits(200, 7).lowered_to(older).unwrap().limits.warnings_max, 7, "there was no such limit");
    }

    #[test]
    fn limits_that_are_lower_now_are_named_and_those_that_are_gone_apply_to_nothing() {
        let lower = |name: &str, then, now| LowerLimit { name: name.to_owned(), then, now };
        let then = limits(200, 6).by_name();
        let named = limits(100, 5).lowered_to(then.clone()).err();
        assert_eq!(named, Some(vec![lower("fuel", 200, 100), lower("warnings_max", 6, 5)]));
        assert_eq!(limits(100, 9).lowered_to(then).err(), Some(vec![lower("fuel", 200, 100)]));
        let gone = [("patience_max".to_owned(), 1)].into();
        assert_eq!(limits(100, 9).lowered_to(gone).err(), Some(Vec::new()));
    }
}
