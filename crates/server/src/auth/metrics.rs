//! The metrics of authentication. No label names a user or an application.

use metrics::{counter, describe_counter, describe_gauge, gauge};

const ACCOUNT_REACHABLE: &str = "airlock_auth_account_reachable";
const UNCONFIRMED: &str = "airlock_auth_unconfirmed_total";
const COMPONENT_ACCEPTED: &str = "airlock_auth_component_accepted";
const COMPONENT_REFUSED: &str = "airlock_auth_component_refused_total";
const COMPONENT_RENEWED: &str = "airlock_auth_component_renewals_total";

/// Registers the help text of each metric.
pub(super) fn describe() {
    describe_gauge!(ACCOUNT_REACHABLE, "Whether the account service answers: 1 or 0");
    describe_counter!(
        UNCONFIRMED,
        "Calls whose credential could not be checked, by result: allowed in the grace time, or refused"
    );
    describe_gauge!(COMPONENT_ACCEPTED, "Whether the account service accepts this component's own token: 1 or 0");
    describe_counter!(COMPONENT_REFUSED, "How often the account service began to refuse this component's own token");
    describe_counter!(COMPONENT_RENEWED, "Renewals of this component's own token, by result: renewed or failed");
}

pub(super) fn account_reachable(is_reachable: bool) {
    gauge!(ACCOUNT_REACHABLE).set(f64::from(u8::from(is_reachable)));
}

/// Counts a call that was decided without a response of the account service.
pub(super) fn unconfirmed(result: &'static str) {
    counter!(UNCONFIRMED, "result" => result).increment(1);
}

pub(super) fn component_accepted(is_accepted: bool) {
    gauge!(COMPONENT_ACCEPTED).set(f64::from(u8::from(is_accepted)));
}

pub(super) fn component_refused() {
    counter!(COMPONENT_REFUSED).increment(1);
}

pub(super) fn component_renewed(result: &'static str) {
    counter!(COMPONENT_RENEWED, "result" => result).increment(1);
}
