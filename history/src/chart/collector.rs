//! Puts numbers of uplinks together by time while several threads read them.

use std::{
    collections::HashSet,
    mem,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use types::Timestamp;

use crate::{
    Error, RecordId, Skipped,
    chart::{
        CHART_POINTS_MAX, Chart, ChartField, ChartPoint, ChartQuery, corrections::Corrections, numbers::Wanted,
        overlaps::Overlaps, uplinks::Uplinks,
    },
    record::moment,
};

/// Maximum number of uplinks in a chart: the newest.
const UPLINKS_MAX: usize = 1_500_000;
/// Maximum number of fields in a chart: the first by path, whichever uplink is read first.
const FIELDS_MAX: usize = 16;
/// Minimum number of parts that the time of a chart has: the oldest is given up if there are too many uplinks.
const SLOTS_MIN: usize = 1000;

/// Puts numbers of uplinks together while several threads read them.
pub(crate) struct Collector<'a> {
    slots: Slots,
    pub(super) wanted: Wanted,
    pub(super) corrections: &'a Corrections,
    overlaps: Overlaps,
    is_stopped: &'a AtomicBool,
    uplinks_max: usize,
    state: Mutex<CollectedUplinks>,
}

/// The time of a chart in slots, some of which are a point.
#[derive(Clone, Copy, Debug)]
struct Slots {
    /// In nanoseconds, as is the width of a slot.
    since: i64,
    width: i64,
    count: usize,
    of_point: usize,
}

#[derive(Debug, Default)]
struct CollectedUplinks {
    /// By path.
    fields: Vec<Field>,
    /// The first path that has no room.
    left_out: Option<String>,
    /// Number of uplinks in each slot.
    uplinks: Vec<usize>,
    examined: usize,
    /// The first slot that was not given up.
    first: usize,
    is_cut: bool,
    /// Uplinks that another source may have, too.
    seen: HashSet<RecordId>,
}

#[derive(Debug)]
struct Field {
    path: String,
    /// The values in each slot.
    values: Vec<Values>,
}

/// Values that became one.
#[derive(Clone, Copy, Debug)]
struct Values {
    min: f64,
    max: f64,
    mean: f64,
    count: u64,
}

impl Values {
    const NONE: Self = Self { min: f64::INFINITY, max: f64::NEG_INFINITY, mean: 0.0, count: 0 };

    fn add(&mut self, other: Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.count += other.count;
        // Unlike a sum, this cannot become infinite. Each part is taken first, because even a difference could.
        let part = other.count as f64 / self.count.max(1) as f64;
        self.mean += other.mean * part - self.mean * part;
    }

    fn of(value: f64) -> Self {
        Self { min: value, max: value, mean: value, count: 1 }
    }
}

impl Slots {
    fn of(query: &ChartQuery) -> Self {
        let points = query.points.clamp(1, CHART_POINTS_MAX);
        let of_point = SLOTS_MIN.div_ceil(points);
        let count = points * of_point;
        let (since, until) = (query.since.as_nanos(), query.until.as_nanos());
        let width = (until.saturating_sub(since).max(1) - 1) / count as i64 + 1;
        Self { since, width, count, of_point }
    }

    fn slot(self, id: RecordId) -> usize {
        let place = id.recorded().as_nanos().saturating_sub(self.since) / self.width;
        usize::try_from(place).unwrap_or(0).min(self.count - 1)
    }

    fn start(self, slot: usize) -> Timestamp {
        let after = self.width.saturating_mul(i64::try_from(slot).unwrap_or(i64::MAX));
        Timestamp::from_nanos(self.since.saturating_add(after))
    }
}

impl<'a> Collector<'a> {
    pub(crate) fn new(
        query: &ChartQuery,
        corrections: &'a Corrections,
        overlaps: Overlaps,
        is_stopped: &'a AtomicBool,
    ) -> Self {
        let slots = Slots::of(query);
        let state = CollectedUplinks { uplinks: vec![0; slots.count], ..CollectedUplinks::default() };
        let wanted = Wanted::new(query.field.as_deref());
        let (uplinks_max, state) = (UPLINKS_MAX, Mutex::new(state));
        Self { slots, wanted, corrections, overlaps, is_stopped, uplinks_max, state }
    }

    /// [`Error::Stopped`] once nobody waits for the chart.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_stopped.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Returns true if an uplink with an id up to `last` can have a place. Otherwise, the chart counts as cut.
    pub(crate) fn admits_any(&self, last: RecordId) -> bool {
        let mut state = self.state.lock();
        let first = state.oldest_with_room(self.uplinks_max);
        // Most charts have room for all.
        let is_admitted = first == 0 || last >= RecordId::first(moment::millis_up(self.slots.start(first)));
        state.is_cut |= !is_admitted;
        is_admitted
    }

    /// Puts uplinks together with those that were added before.
    pub(super) fn add(&self, uplinks: &Uplinks) {
        let mut state = self.state.lock();
        let fields = state.places(uplinks, self.slots.count);
        for (id, numbers) in uplinks.each() {
            let slot = self.slots.slot(id);
            let is_shared = self.overlaps.has(id);
            if (is_shared && state.seen.contains(&id)) || !state.take_place(slot, self) {
                continue;
            }
            if is_shared {
                state.seen.insert(id);
            }
            for (place, number) in numbers {
                state.add(fields.get(*place).copied().flatten(), slot, *number);
            }
        }
    }

    /// The chart of what was added, without files that could not be read.
    pub(crate) fn into_chart(self, is_cut: bool, skipped: Vec<Skipped>) -> Chart {
        let Self { slots, state, .. } = self;
        let CollectedUplinks { fields, left_out, examined, is_cut: has_given_up, .. } = state.into_inner();
        let fields =
            fields.into_iter().map(|Field { path, values }| ChartField { path, points: points(slots, &values) });
        Chart {
            point_ns: slots.width.saturating_mul(slots.of_point as i64),
            examined,
            is_cut: is_cut || has_given_up,
            has_more_fields: left_out.is_some(),
            fields: fields.filter(|field| !field.points.is_empty()).collect(),
            skipped,
        }
    }
}

impl CollectedUplinks {
    /// The places of the fields of some uplinks, by those of their paths; none for those that have no room.
    fn places(&mut self, uplinks: &Uplinks, slots: usize) -> Vec<Option<usize>> {
        uplinks.paths().for_each(|(path, _)| self.make_field(path, slots));
        let mut places = Vec::new();
        for (path, place) in uplinks.paths() {
            places.resize(places.len().max(place + 1), None);
            let found = self.fields.binary_search_by(|field| field.path.as_str().cmp(path)).ok();
            places.iter_mut().skip(place).take(1).for_each(|place| *place = found);
        }
        places
    }

    fn make_field(&mut self, path: &str, slots: usize) {
        if self.left_out.as_deref().is_some_and(|left_out| path >= left_out) {
            return;
        }
        if let Err(place) = self.fields.binary_search_by(|field| field.path.as_str().cmp(path)) {
            self.fields.insert(place, Field { path: path.to_owned(), values: vec![Values::NONE; slots] });
        }
        if self.fields.len() > FIELDS_MAX {
            self.left_out = self.fields.pop().map(|field| field.path);
        }
    }

    /// Counts an uplink, for which the oldest ones are given up if there are too many. False if it is one of those.
    fn take_place(&mut self, slot: usize, collector: &Collector<'_>) -> bool {
        if slot < self.oldest_with_room(collector.uplinks_max) {
            self.is_cut = true;
            return false;
        }
        if self.examined >= collector.uplinks_max {
            self.is_cut = true;
            self.give_up_oldest(collector.slots);
        }
        self.examined += 1;
        self.uplinks.iter_mut().skip(slot).take(1).for_each(|uplinks| *uplinks += 1);
        true
    }

    /// The first slot that can take an uplink.
    fn oldest_with_room(&self, uplinks_max: usize) -> usize {
        if self.examined < uplinks_max { self.first } else { self.oldest() + 1 }
    }

    fn oldest(&self) -> usize {
        self.uplinks.iter().position(|uplinks| *uplinks > 0).unwrap_or(self.first)
    }

    fn give_up_oldest(&mut self, slots: Slots) {
        let oldest = self.oldest();
        let uplinks: usize = self.uplinks.iter_mut().skip(oldest).take(1).map(mem::take).sum();
        self.examined = self.examined.saturating_sub(uplinks);
        let values = self.fields.iter_mut().flat_map(|field| field.values.iter_mut().skip(oldest).take(1));
        values.for_each(|values| *values = Values::NONE);
        self.first = oldest + 1;
        self.seen.retain(|id| slots.slot(*id) > oldest);
    }

    fn add(&mut self, field: Option<usize>, slot: usize, number: f64) {
        let values = field.and_then(|place| self.fields.get_mut(place)?.values.get_mut(slot));
        values.into_iter().for_each(|values| values.add(Values::of(number)));
    }
}

/// The values of a field as points.
fn points(slots: Slots, values: &[Values]) -> Vec<ChartPoint> {
    let points = values.chunks(slots.of_point).enumerate().filter_map(|(place, part)| {
        let mut all = Values::NONE;
        part.iter().filter(|values| values.count > 0).for_each(|values| all.add(*values));
        let Values { min, max, mean, count } = all;
        (count > 0).then(|| ChartPoint { time: slots.start(place * slots.of_point), min, mean, max, count })
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(points: usize, field: Option<&str>) -> ChartQuery {
        ChartQuery {
            app_id: "my-app".parse().unwrap(),
            dev_id: "a1".parse().unwrap(),
            since: Timestamp::from_millis(100_000),
            until: Timestamp::from_millis(200_000),
            field: field.map(str::to_owned),
            points,
        }
    }

    fn id(second: u64) -> RecordId {
        RecordId::new(second * 1000, 0, 0)
    }

    fn chart_of(query: &ChartQuery, uplinks_max: usize, sources: &[&[(u64, &str)]]) -> Chart {
        let (corrections, is_stopped) = (Corrections::default(), AtomicBool::default());
        let ends = sources.iter().map(|source| (id(source[0].0), id(source[source.len() - 1].0)));
        let mut collector = Collector::new(query, &corrections, Overlaps::of(ends), &is_stopped);
        collector.uplinks_max = uplinks_max;
        for source in sources {
            let mut uplinks = Uplinks::default();
            source.iter().for_each(|(second, result)| uplinks.add(id(*second), result, &collector.wanted));
            collector.add(&uplinks);
        }
        collector.into_chart(false, Vec::new())
    }

    fn chart(query: &ChartQuery, values: &[(u64, &str)]) -> Chart {
        chart_of(query, UPLINKS_MAX, &[values])
    }

    #[test]
    fn values_of_a_part_of_the_time_become_one_point() {
        let values = [(100, r#"{"t":1}"#), (104, r#"{"t":4}"#), (109, r#"{"t":1}"#), (110, r#"{"t":7}"#)];
        for field in [None, Some("t")] {
            let chart = chart(&query(10, field), &values);
            assert_eq!((chart.point_ns, chart.examined, chart.is_cut), (10_000_000_000, 4, false));
            let points: Vec<_> = chart.fields[0]
                .points
                .iter()
                .map(|point| {
                    (point.time.as_millis(), point.min, (point.mean * 1e6).round() / 1e6, point.max, point.count)
                })
                .collect();
            assert_eq!(points, [(100_000, 1.0, 2.0, 4.0, 3), (110_000, 7.0, 7.0, 7.0, 1)]);
        }
    }

    #[test]
    fn there_are_so_many_fields_and_points_and_always_the_same() {
        let result = |numbers: &mut dyn Iterator<Item = usize>| {
            let fields: Vec<_> = numbers.map(|number| format!(r#""f{number:02}":1"#)).collect();
            format!("{{{}}}", fields.join(","))
        };
        let (first, last) = (result(&mut (0..20_usize)), result(&mut (10..40_usize)));
        let seconds = 100..200_u64;
        for results in [[&first, &last], [&last, &first]] {
            let values: Vec<_> =
                seconds.clone().map(|second| (second, results[second as usize % 2].as_str())).collect();
            let chart = chart(&query(7, None), &values);
            let paths: Vec<_> = chart.fields.iter().map(|field| field.path.clone()).collect();
            assert_eq!(paths, (0..16).map(|number| format!("f{number:02}")).collect::<Vec<_>>());
            assert!(chart.has_more_fields && chart.fields.iter().all(|field| field.points.len() == 7));
        }
        let one = chart(&query(7, Some("f39")), &[(100, &last), (101, &first)]);
        assert_eq!((one.fields.len(), one.has_more_fields, one.examined), (1, false, 2));
    }

    #[test]
    fn the_newest_remain_whatever_is_read_first() {
        let seconds: Vec<u64> = (100..200).step_by(10).collect();
        let values: Vec<_> = seconds.iter().map(|second| (*second, r#"{"t":1}"#)).collect();
        let (older, newer) = values.split_at(5);
        for sources in [[older, newer], [newer, older]] {
            let chart = chart_of(&query(1, None), 3, &sources);
            assert_eq!((chart.examined, chart.is_cut), (3, true));
            assert_eq!(chart.fields[0].points.iter().map(|point| point.count).sum::<u64>(), 3);
            let fine = chart_of(&query(1000, None), 3, &sources);
            let times: Vec<_> = fine.fields[0].points.iter().map(|point| point.time.as_millis()).collect();
            assert_eq!(times, [170_000, 180_000, 190_000]);
        }
        let chart = chart_of(&query(1, None), 10, &[older, newer]);
        assert_eq!((chart.examined, chart.is_cut), (10, false));
    }

    #[test]
    fn an_uplink_that_two_sources_have_counts_once() {
        let values: Vec<_> = (100..110).map(|second| (second, r#"{"t":1}"#)).collect();
        let chart = chart_of(&query(1, None), UPLINKS_MAX, &[&values[..], &values[5..], &values[..7]]);
        assert_eq!((chart.examined, chart.fields[0].points[0].count), (10, 10));
    }

    #[test]
    fn results_that_are_not_json_have_no_values_and_hide_no_others() {
        let chart = chart(&query(1, None), &[(100, r#"{"t":1,"#), (101, r#"{"t":5}"#)]);
        assert_eq!((chart.examined, chart.fields[0].points[0].count, chart.fields[0].points[0].min), (2, 1, 5.0));
    }

    #[test]
    fn the_mean_of_large_numbers_is_finite() {
        let values = [(100, r#"{"t":1.7e308}"#), (101, r#"{"t":-1.7e308}"#), (150, r#"{"t":1.7e308}"#)];
        let chart = chart(&query(1, None), &values);
        assert!(chart.fields[0].points[0].mean.is_finite());
    }
}
