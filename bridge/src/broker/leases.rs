//! Coordination of the processes that receive: who takes part, and who has the lease where a broker does not divide
//! messages among them.

use futures::future::BoxFuture;

/// Gives each of several processes the right to receive, one at a time, where they cannot share.
pub trait ReceiveLeases: Send + Sync {
    /// Lets the others know that this process shares with them under a client id of its own. Ends only when it is
    /// dropped, and the others know for some time.
    fn take_part<'a>(&'a self, client_id: &'a str) -> BoxFuture<'a, ()>;

    /// This process no longer shares. Returns whether others do; an error if that cannot be found out.
    fn leave<'a>(&'a self, client_id: &'a str) -> BoxFuture<'a, Result<bool, String>>;

    /// Acquires the right; none if another process has it, an error if that cannot be found out.
    fn acquire(&self) -> BoxFuture<'_, Result<Option<Box<dyn ReceiveLease>>, String>>;
}

/// The right to receive.
pub trait ReceiveLease: Send + Sync {
    /// The client id that all of the processes use in turns, so that the broker keeps one session for them.
    fn client_id(&self) -> &str;

    /// Waits until another process may have the right.
    fn lost(&self) -> BoxFuture<'_, ()>;

    /// Leaves the right to others.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;
}
