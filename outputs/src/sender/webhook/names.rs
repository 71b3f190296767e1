//! Resolves the names of webhooks: in threads of its own, of which each owner may use a few, and before the request.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
    num::NonZeroUsize,
    sync::Arc,
    thread,
    time::Duration,
};

use lru::LruCache;
use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use server::ledger::{Owner, OwnerTurn, Turns};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use super::address::{Private, is_public};
use crate::sender::SendError;

/// Time that a request waits for the addresses of its host, its turn to look them up included.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that addresses are used, and that a name without any is not looked up again.
const FOUND_TIME: Duration = Duration::from_secs(30);
const FAILED_TIME: Duration = Duration::from_secs(5);
/// Maximum number of names in the cache.
const NAMES_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);
const THREAD_STACK_BYTES: usize = 512 << 10;

/// Finds the addresses of a host, with port 0. It may block for long.
pub type LookUp = Arc<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Asks the system.
pub fn system_look_up() -> LookUp {
    Arc::new(|host| Ok((host, 0).to_socket_addrs()?.collect()))
}

/// The addresses of hosts.
pub(crate) struct Names {
    look_up: LookUp,
    turns: Arc<Turns>,
    allow_private: bool,
    known: Mutex<LruCache<String, CachedAddresses>>,
}

struct CachedAddresses {
    addresses: Result<Vec<SocketAddr>, SendError>,
    until: Instant,
}

impl Names {
    pub(crate) fn new(look_up: LookUp, turns: Arc<Turns>, allow_private: bool) -> Self {
        Self { look_up, turns, allow_private, known: Mutex::new(LruCache::new(NAMES_MAX)) }
    }

    /// Looks a host up, unless that was done a moment ago.
    pub(super) async fn prepare(&self, owner: &Owner, host: &str) {
        if self.known.lock().get(host).is_some_and(|known| Instant::now() < known.until) {
            return;
        }
        let found = timeout(LOOK_UP_TIMEOUT, self.look_up(owner, host)).await;
        let addresses =
            found.unwrap_or_else(|_| Err(unreachable("no answer with the address of the receiver in time")));
        let time = if addresses.is_ok() { FOUND_TIME } else { FAILED_TIME };
        self.known.lock().put(host.to_owned(), CachedAddresses { addresses, until: Instant::now() + time });
    }

    /// Returns the error of requests to a host; none if its addresses are known.
    pub(super) fn failure(&self, host: &str) -> Option<SendError> {
        match self.known.lock().get(host) {
            Some(known) => known.addresses.as_ref().err().cloned(),
            None => Some(unreachable("the address of the receiver is not known")),
        }
    }

    async fn look_up(&self, owner: &Owner, host: &str) -> Result<Vec<SocketAddr>, SendError> {
        let none = || unreachable("the receiver has no address");
        let turn = self.turns.take(owner).await.ok_or_else(none)?;
        let found = self.start(host.to_owned(), turn).map_err(|_| none())?.await;
        let mut addresses = found.ok().and_then(Result::ok).filter(|found| !found.is_empty()).ok_or_else(none)?;
        if !self.allow_private {
            addresses.retain(|address| is_public(address.ip()));
        }
        match addresses.is_empty() {
            true => Err(SendError::refused(Private(host.to_owned()).to_string())),
            false => Ok(addresses),
        }
    }

    /// The turn ends with the thread: nobody can end a look-up that hangs.
    fn start(&self, host: String, turn: OwnerTurn) -> io::Result<oneshot::Receiver<io::Result<Vec<SocketAddr>>>> {
        let (sender, found) = oneshot::channel();
        let look_up = Arc::clone(&self.look_up);
        let thread = thread::Builder::new().name("look-up".to_owned()).stack_size(THREAD_STACK_BYTES);
        thread.spawn(move || {
            let _turn = turn;
            // Nobody may wait for it any more.
            _ = sender.send(look_up(&host));
        })?;
        Ok(found)
    }
}

fn unreachable(reason: &str) -> SendError {
    SendError::Unreachable(reason.to_owned())
}

/// For connections: what was found and checked before. Nothing is looked up here.
impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.known.lock().get(name.as_str()).map(|known| known.addresses.clone());
        Box::pin(async move {
            let addresses =
                addresses.unwrap_or_else(|| Err(unreachable("the address of the receiver is not known")))?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
