//! The attacks, in the order in which they are run.

mod dead_webhooks;
mod dry_runs;
mod fan_out;
mod flood;
mod hoarder;
mod idle_connections;
mod idle_mqtt;
mod lists;
mod logins;
mod receiver;
mod refusals;
mod resend;
mod shared_filters;
mod silent_dns;
mod slow_receivers;
mod tokens;
mod topic_aliases;
mod unfinished_bodies;
mod unread_responses;

use crate::attack::Attack;

/// All attacks.
pub(crate) const ALL: [&Attack; 21] = [
    &dead_webhooks::ATTACK,
    &idle_connections::HTTP1,
    &idle_connections::HTTP2,
    &idle_connections::MANY,
    &idle_mqtt::ATTACK,
    &unfinished_bodies::ATTACK,
    &shared_filters::ATTACK,
    &slow_receivers::ATTACK,
    &silent_dns::ATTACK,
    &fan_out::ATTACK,
    &topic_aliases::ATTACK,
    &refusals::ATTACK,
    &resend::ATTACK,
    &unread_responses::HTTP2,
    &unread_responses::HTTP1,
    &lists::ATTACK,
    &dry_runs::ATTACK,
    &logins::ATTACK,
    &tokens::ATTACK,
    &flood::OF_ONE,
    &flood::OF_MANY,
];
