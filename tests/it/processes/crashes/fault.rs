//! Faults of the server and of what it talks to.

use std::time::Duration;

use testing::RedisProcess;
use tokio::{task::block_in_place, time::sleep};

use super::subscriber::Subscriber;
use crate::{
    delivery::webhooks::receiver::{Answer, Receiver},
    harness::server_process::ServerProcess,
};

/// Time for which something is frozen, full or away.
const WHILE: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// Until the next round.
    KilledServer,
    FrozenServer,
    KilledRedis,
    FrozenRedis,
    FullRedis,
    /// Until the next round.
    StoppedReceiver,
    RefusingReceiver,
    /// It reads requests, and does not answer them.
    FrozenReceiver,
    KilledSubscriber,
}

impl Fault {
    pub(super) const ALL: [Self; 10] = [
        Self::KilledServer,
        Self::FrozenServer,
        Self::KilledRedis,
        Self::StoppedReceiver,
        // The most likely one to lose something comes twice as often.
        Self::KilledServer,
        Self::FrozenRedis,
        Self::KilledSubscriber,
        Self::FullRedis,
        Self::RefusingReceiver,
        Self::FrozenReceiver,
    ];

    pub(super) async fn happen(
        self,
        server: &mut ServerProcess,
        redis: &mut RedisProcess,
        receiver: &mut Receiver,
        subscriber: &mut Subscriber,
    ) {
        match self {
            Self::KilledServer => block_in_place(|| server.kill()),
            Self::FrozenServer => {
                server.freeze();
                sleep(WHILE).await;
                server.thaw();
            }
            Self::KilledRedis => {
                redis.stop();
                sleep(WHILE).await;
                block_in_place(|| redis.start_again());
            }
            Self::FrozenRedis => {
                redis.freeze();
                sleep(WHILE).await;
                redis.thaw();
            }
            Self::FullRedis => {
                block_in_place(|| redis.fill());
                sleep(WHILE).await;
                block_in_place(|| redis.empty());
            }
            Self::StoppedReceiver => receiver.stop().await,
            Self::RefusingReceiver => receiver.answer([Answer::Status(503); 5]),
            Self::FrozenReceiver => receiver.answer([Answer::Never; 3]),
            Self::KilledSubscriber => subscriber.restart(),
        }
    }
}
