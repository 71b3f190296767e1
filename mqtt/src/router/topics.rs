//! The filters of one application, as a tree by topic level.

use std::{collections::HashMap, ops::Range};

/// Subscriptions by filter; `S` is a subscriber, `O` the options of one subscription.
pub(crate) struct Filters<S, O> {
    root: Level<S, O>,
}

/// A node of the filter tree: one level of a topic, where `+` is a level like any other.
struct Level<S, O> {
    below: HashMap<Box<str>, Self>,
    /// Filters that end at this level.
    here: Subscribers<S, O>,
    /// Filters that end with `#` below this level.
    rest: Subscribers<S, O>,
}

struct Subscribers<S, O> {
    single: Vec<(S, O)>,
    groups: Vec<Group<S, O>>,
}

/// A shared subscription: each message goes to one of the members.
struct Group<S, O> {
    name: Box<str>,
    members: Vec<(S, O)>,
    next: usize,
}

/// A filter without the group of a shared subscription, and the group.
pub(crate) fn split_group(filter: &str) -> (Option<&str>, &str) {
    let shared = filter.strip_prefix("$share/").and_then(|rest| rest.split_once('/'));
    shared.map_or((None, filter), |(group, filter)| (Some(group), filter))
}

/// The first level of a topic, and what is below it.
fn split_level(topic: &str) -> (&str, Option<&str>) {
    topic.split_once('/').map_or((topic, None), |(name, others)| (name, Some(others)))
}

impl<S: PartialEq, O> Filters<S, O> {
    /// Adds a subscription, or replaces its options.
    pub(crate) fn insert(&mut self, filter: &str, subscriber: S, options: O) {
        let (group, filter) = split_group(filter);
        let mut level = &mut self.root;
        for name in filter.split('/') {
            if name == "#" {
                return level.rest.insert(group, subscriber, options);
            }
            level = level.below.entry(name.into()).or_default();
        }
        level.here.insert(group, subscriber, options);
    }

    /// Removes a subscription; returns whether there was one.
    pub(crate) fn remove(&mut self, filter: &str, subscriber: &S) -> bool {
        let (group, filter) = split_group(filter);
        let levels: Vec<&str> = filter.split('/').collect();
        self.root.remove(&levels, group, subscriber)
    }

    /// Returns true if a subscription matches any topic below `topic`.
    pub(crate) fn may_match_below(&self, topic: &str) -> bool {
        self.root.may_match_below(Some(topic))
    }

    /// Calls `each` for every subscription that matches `topic`, and names these of its levels instead of matching
    /// them with wildcards: they are counted from the last one, which is 0. Of a group, it is called for the next
    /// member that `is_present`, or else the next.
    pub(crate) fn for_each_match(
        &mut self,
        (topic, named): (&str, &Range<usize>),
        is_present: impl Fn(&S) -> bool,
        mut each: impl FnMut(&S, &O),
    ) {
        self.root.visit((Some(topic), named), &is_present, &mut each);
    }

    /// Calls `each` with all who may get what is published on `topic`: a subscriber, or the members of a group.
    pub(crate) fn for_each_candidates(&self, (topic, named): (&str, &Range<usize>), mut each: impl FnMut(&[(S, O)])) {
        self.root.visit_candidates((Some(topic), named), &mut each);
    }
}

/// Wildcards that match at a place in a topic.
struct Wildcards {
    /// `+`, the next level.
    level: bool,
    /// `#`, all that remains.
    rest: bool,
}

impl Wildcards {
    /// `topic` is what remains of it; `named` is as for [`Filters::for_each_match`].
    fn of(topic: Option<&str>, named: &Range<usize>) -> Self {
        if named.is_empty() {
            return Self { level: true, rest: true };
        }
        let remaining = topic.map_or(0, |topic| topic.split('/').count());
        let is_named = remaining.checked_sub(1).is_some_and(|next| named.contains(&next));
        Self { level: !is_named, rest: named.start > 0 && named.start >= remaining }
    }
}

impl<S: PartialEq, O> Level<S, O> {
    /// `topic` is what remains of it below this level.
    fn may_match_below(&self, topic: Option<&str>) -> bool {
        if !self.rest.is_empty() {
            return true;
        }
        // Levels below nobody subscribed to are removed.
        let Some(topic) = topic else { return !self.below.is_empty() };
        let (name, others) = split_level(topic);
        [name, "+"].iter().any(|name| self.below.get(*name).is_some_and(|level| level.may_match_below(others)))
    }

    fn is_empty(&self) -> bool {
        self.below.is_empty() && self.here.is_empty() && self.rest.is_empty()
    }

    fn remove(&mut self, levels: &[&str], group: Option<&str>, subscriber: &S) -> bool {
        match levels {
            [] => self.here.remove(group, subscriber),
            ["#"] => self.rest.remove(group, subscriber),
            [first, others @ ..] => {
                let Some(level) = self.below.get_mut(*first) else { return false };
                let removed = level.remove(others, group, subscriber);
                if level.is_empty() {
                    self.below.remove(*first);
                }
                removed
            }
        }
    }

    /// `topic` is what remains of it below this level.
    fn visit(
        &mut self,
        (topic, named): (Option<&str>, &Range<usize>),
        is_present: &impl Fn(&S) -> bool,
        each: &mut impl FnMut(&S, &O),
    ) {
        let wildcards = Wildcards::of(topic, named);
        if wildcards.rest {
            self.rest.visit(is_present, each);
        }
        let Some(topic) = topic else { return self.here.visit(is_present, each) };
        let (name, others) = split_level(topic);
        for name in [Some(name), wildcards.level.then_some("+")].into_iter().flatten() {
            if let Some(level) = self.below.get_mut(name) {
                level.visit((others, named), is_present, each);
            }
        }
    }

    /// `topic` is what remains of it below this level.
    fn visit_candidates(&self, (topic, named): (Option<&str>, &Range<usize>), each: &mut impl FnMut(&[(S, O)])) {
        let wildcards = Wildcards::of(topic, named);
        if wildcards.rest {
            self.rest.visit_candidates(each);
        }
        let Some(topic) = topic else { return self.here.visit_candidates(each) };
        let (name, others) = split_level(topic);
        for name in [Some(name), wildcards.level.then_some("+")].into_iter().flatten() {
            if let Some(level) = self.below.get(name) {
                level.visit_candidates((others, named), each);
            }
        }
    }
}

impl<S: PartialEq, O> Subscribers<S, O> {
    fn is_empty(&self) -> bool {
        self.single.is_empty() && self.groups.is_empty()
    }

    fn insert(&mut self, group: Option<&str>, subscriber: S, options: O) {
        let members = match group {
            None => &mut self.single,
            Some(name) => self.group(name),
        };
        members.retain(|(member, _)| *member != subscriber);
        members.push((subscriber, options));
    }

    fn group(&mut self, name: &str) -> &mut Vec<(S, O)> {
        let at = self.groups.iter().position(|group| *group.name == *name).unwrap_or_else(|| {
            self.groups.push(Group { name: name.into(), members: Vec::new(), next: 0 });
            self.groups.len() - 1
        });
        &mut self.groups[at].members
    }

    fn remove(&mut self, group: Option<&str>, subscriber: &S) -> bool {
        let members = match group {
            None => &mut self.single,
            Some(name) => self.group(name),
        };
        let before = members.len();
        members.retain(|(member, _)| member != subscriber);
        let removed = members.len() < before;
        self.groups.retain(|group| !group.members.is_empty());
        removed
    }

    fn visit(&mut self, is_present: &impl Fn(&S) -> bool, each: &mut impl FnMut(&S, &O)) {
        self.single.iter().for_each(|(subscriber, options)| each(subscriber, options));
        for group in &mut self.groups {
            if let Some((subscriber, options)) = group.take_turn(is_present) {
                each(subscriber, options);
            }
        }
    }

    fn visit_candidates(&self, each: &mut impl FnMut(&[(S, O)])) {
        self.single.chunks(1).for_each(&mut *each);
        self.groups.iter().for_each(|group| each(&group.members));
    }
}

impl<S, O> Group<S, O> {
    fn take_turn(&mut self, is_present: &impl Fn(&S) -> bool) -> Option<&(S, O)> {
        let count = self.members.len();
        let order = (0..count).map(|number| (self.next + number) % count);
        let present = order.clone().find(|at| is_present(&self.members[*at].0));
        let at = present.or_else(|| order.into_iter().next())?;
        self.next = at + 1;
        self.members.get(at)
    }
}

impl<S, O> Default for Filters<S, O> {
    fn default() -> Self {
        Self { root: Level::default() }
    }
}

impl<S, O> Default for Level<S, O> {
    fn default() -> Self {
        Self { below: HashMap::new(), here: Subscribers::default(), rest: Subscribers::default() }
    }
}

impl<S, O> Default for Subscribers<S, O> {
    fn default() -> Self {
        Self { single: Vec::new(), groups: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use mqtt5_protocol::{is_valid_topic_filter, topic_matches_filter};
    use proptest::prelude::*;

    use super::*;

    fn matches(filters: &mut Filters<usize, ()>, topic: &str) -> Vec<usize> {
        let mut found = Vec::new();
        filters.for_each_match((topic, &(0..0)), |_| true, |subscriber, ()| found.push(*subscriber));
        let mut candidates = Vec::new();
        filters.for_each_candidates((topic, &(0..0)), |all| candidates.extend(all.iter().map(|(one, ())| *one)));
        assert!(found.iter().all(|found| candidates.contains(found)), "{found:?} are not all of {candidates:?}");
        found.sort_unstable();
        found
    }

    #[test]
    fn members_of_a_group_take_turns_and_absent_ones_are_passed_over() {
        let mut filters = Filters::default();
        for member in 0..3 {
            filters.insert("$share/g/a/+", member, ());
        }
        let turns: Vec<_> = (0..6).flat_map(|_| matches(&mut filters, "a/b")).collect();
        assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
        let mut found = Vec::new();
        for _ in 0..4 {
            filters.for_each_match(("a/b", &(0..0)), |member| *member != 1, |member, ()| found.push(*member));
        }
        assert_eq!(found, [0, 2, 0, 2]);
        found.clear();
        filters.for_each_match(("a/b", &(0..0)), |_| false, |member, ()| found.push(*member));
        assert_eq!(found.len(), 1, "nobody is present, but one of them gets it later");
    }

    #[test]
    fn a_second_subscription_to_a_filter_replaces_the_first() {
        let mut filters = Filters::default();
        filters.insert("a/#", 1, "old");
        filters.insert("a/#", 1, "new");
        let mut found = Vec::new();
        filters.for_each_match(("a", &(0..0)), |_| true, |_, options| found.push(*options));
        assert_eq!(found, ["new"]);
        assert!(filters.remove("a/#", &1) && !filters.remove("a/#", &1));
    }

    // Conformance: The events `down/scheduled` and `down/sent` as `events/downlink/…`
    #[test]
    fn filters_that_must_name_the_last_levels_do_not_match_them_with_wildcards() {
        let all = ["a/b/c", "+/b/c", "a/+/c", "a/b/+", "a/b/#", "#", "a/+/+", "+/b/c/d", "$share/g/+/b/c"];
        let mut filters = Filters::default();
        for filter in all {
            filters.insert(filter, filter, ());
        }
        for (named, expected) in [
            (0..2, &["a/b/c", "+/b/c", "$share/g/+/b/c"][..]),
            (1..2, &["a/b/c", "a/b/+", "a/b/#", "+/b/c", "$share/g/+/b/c"]),
        ] {
            let (mut found, mut candidates) = (Vec::new(), Vec::new());
            filters.for_each_match(("a/b/c", &named), |_| true, |filter, ()| found.push(*filter));
            filters.for_each_candidates(("a/b/c", &named), |all| candidates.extend(all.iter().map(|(one, ())| *one)));
            found.sort_unstable();
            candidates.sort_unstable();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!((&found, &candidates), (&expected, &expected), "{named:?}");
        }
    }

    fn path(names: &'static [&'static str]) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(names), 1..5).prop_map(|levels| levels.join("/"))
    }

    proptest! {
        /// The tree finds what comparing each filter finds, also after some were removed.
        #[test]
        fn finds_the_matching_filters(
            filters in prop::collection::vec((path(&["a", "b", "", "+", "#"]), any::<bool>()), 0..20),
            topics in prop::collection::vec(path(&["a", "b", "", "c"]), 1..10),
        ) {
            let valid = |(filter, _): &(String, bool)| is_valid_topic_filter(filter);
            let filters: Vec<_> = filters.into_iter().filter(valid).collect();
            let mut tree = Filters::default();
            for (number, (filter, _)) in filters.iter().enumerate() {
                tree.insert(filter, number, ());
            }
            for (number, (filter, stays)) in filters.iter().enumerate() {
                prop_assert!(*stays || tree.remove(filter, &number));
            }
            for topic in topics.iter().filter(|topic| !topic.is_empty()) {
                let expected: Vec<_> = filters.iter().enumerate()
                    .filter(|(_, (filter, stays))| *stays && topic_matches_filter(topic, filter))
                    .map(|(number, _)| number)
                    .collect();
                prop_assert_eq!(matches(&mut tree, topic), expected, "{}", topic);
            }
            for topic in topics.iter().filter(|topic| !topic.is_empty()) {
                let expected = filters.iter().any(|(filter, stays)| {
                    // Any topic below that the filter matches, if there is one.
                    let more = filter.split('/').skip(topic.split('/').count());
                    let more: Vec<_> = more.map(|level| if ["+", "#"].contains(&level) { "z" } else { level }).collect();
                    let below = if more.is_empty() { "z".to_owned() } else { more.join("/") };
                    *stays && topic_matches_filter(&format!("{topic}/{below}"), filter)
                });
                prop_assert_eq!(tree.may_match_below(topic), expected, "{}", topic);
            }
            for (number, (filter, stays)) in filters.iter().enumerate() {
                prop_assert_eq!(tree.remove(filter, &number), *stays);
            }
            prop_assert!(tree.root.is_empty());
        }
    }
}
