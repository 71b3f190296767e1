//! Memory of sessions and of the messages that wait in them, charged to the owners of applications.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ::metrics::Gauge;
use parking_lot::Mutex;
use server::ledger::{Budget, BudgetSettings, Charge, Exceeded, Ledger, Owner, Owners};
use types::{AppId, Clock};

use crate::metrics;

/// An owner is charged in steps of at least this many bytes, so that most messages change nothing about it.
const STEP_BYTES: usize = 4096;

/// The memory of the sessions of all applications.
#[derive(Clone)]
pub struct SessionMemory(Arc<All>);

struct All {
    queued: Arc<Budget>,
    owners: Arc<Owners>,
    queued_messages: Gauge,
    queued_bytes: Gauge,
}

/// The memory of the sessions of one application.
pub(crate) struct ApplicationMemory {
    app_id: AppId,
    messages: AtomicUsize,
    used: AtomicUsize,
    /// Bytes charged to the owner: a little more than `used`. If less, the owner has exceeded its share.
    charged: AtomicUsize,
    charge: Mutex<Option<(Owner, Charge)>>,
    all: Arc<All>,
}

/// Memory of one message, released on drop.
#[derive(Debug)]
pub(crate) struct MessageMemory {
    bytes: usize,
    memory: Arc<ApplicationMemory>,
}

/// Memory of one session without its messages, released on drop.
#[derive(Debug)]
pub(crate) struct SessionBytes {
    bytes: usize,
    memory: Arc<ApplicationMemory>,
}

impl SessionMemory {
    /// Memory that is charged to the owners of applications.
    pub fn new(queued: Arc<Budget>, owners: Arc<Owners>) -> Self {
        let (queued_messages, queued_bytes) = (metrics::queued_messages(), metrics::queued_bytes());
        Self(Arc::new(All { queued, owners, queued_messages, queued_bytes }))
    }

    /// Memory within a budget of its own, of which every application is an owner.
    pub(crate) fn of_applications(clock: Arc<dyn Clock>) -> Self {
        Self::new(Ledger::new(&BudgetSettings::default()).queued, Arc::new(Owners::unknown(clock)))
    }

    /// The owner of an application; asks if that is not known.
    pub(crate) async fn owner_of(&self, app_id: &AppId) -> Owner {
        self.0.owners.of(app_id).await
    }

    /// The memory of another application.
    pub(crate) fn application(&self, app_id: &AppId) -> Arc<ApplicationMemory> {
        Arc::new(ApplicationMemory {
            app_id: app_id.clone(),
            messages: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            charged: AtomicUsize::new(0),
            charge: Mutex::default(),
            all: Arc::clone(&self.0),
        })
    }
}

impl ApplicationMemory {
    /// Reserves what a message needs. The owner may have more than its share then.
    pub(crate) fn reserve_message(self: &Arc<Self>, bytes: usize) -> MessageMemory {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.add(bytes);
        self.all.queued_messages.increment(1.0);
        self.all.queued_bytes.increment(bytes as f64);
        MessageMemory { bytes, memory: Arc::clone(self) }
    }

    /// Reserves what a session needs that is already there.
    pub(crate) fn reserve_session(self: &Arc<Self>, bytes: usize) -> SessionBytes {
        self.add(bytes);
        SessionBytes { bytes, memory: Arc::clone(self) }
    }

    /// Reserves what a new session needs, unless the owner would have more than its share.
    pub(crate) fn try_session(self: &Arc<Self>, bytes: usize) -> Result<SessionBytes, Exceeded> {
        let mut session = self.reserve_session(0);
        session.grow(bytes)?;
        Ok(session)
    }

    /// Returns the number of waiting messages.
    pub(crate) fn messages(&self) -> usize {
        self.messages.load(Ordering::Relaxed)
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns true if the owner has more than its share.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.used() > self.charged.load(Ordering::Relaxed)
    }

    /// The owner as far as it is known.
    pub(crate) fn owner(&self) -> Owner {
        self.all.owners.last(&self.app_id)
    }

    fn add(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used > self.charged.load(Ordering::Relaxed) {
            // Whoever adds messages looks whether it is exceeded.
            _ = self.settle();
        }
    }

    fn subtract(&self, bytes: usize) {
        let used = self.used.fetch_sub(bytes, Ordering::Relaxed).saturating_sub(bytes);
        if self.charged.load(Ordering::Relaxed) > 2 * (used + STEP_BYTES) {
            _ = self.settle();
        }
    }

    /// Charges the owner with what is used, and some more; an error if that exceeds its share.
    pub(crate) fn settle(&self) -> Result<(), Exceeded> {
        let mut charge = self.charge.lock();
        let owner = self.owner();
        if charge.as_ref().is_none_or(|(charged, _)| *charged != owner) {
            // Given back first: it may be the same budget of the same user.
            *charge = None;
            self.charged.store(0, Ordering::Relaxed);
            *charge = Some((owner.clone(), self.all.queued.charge(&owner, 0)?));
        }
        let Some((_, charge)) = charge.as_mut() else { return Ok(()) };
        let (used, charged) = (self.used(), self.charged.load(Ordering::Relaxed));
        let ample = used + used / 4 + STEP_BYTES;
        if charged > ample {
            charge.shrink(bytes(charged - ample));
            self.charged.store(ample, Ordering::Relaxed);
        } else if used > charged {
            // Near its share, an owner gets what it needs, and nothing more.
            let is_ample = charge.try_grow(bytes(ample - charged)).is_ok();
            if !is_ample {
                charge.grow(bytes(used - charged))?;
            }
            self.charged.store(if is_ample { ample } else { used }, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl SessionBytes {
    /// Takes more, unless the owner would have more than its share.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.add(bytes);
        if self.memory.is_exceeded()
            && let Err(exceeded) = self.memory.settle()
        {
            self.shrink(bytes);
            return Err(exceeded);
        }
        Ok(())
    }

    /// Takes more, even if the owner has more than its share then.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.memory.add(bytes);
    }

    /// Gives a part back.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.memory.subtract(bytes);
    }
}

fn bytes(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl Drop for MessageMemory {
    fn drop(&mut self) {
        self.memory.messages.fetch_sub(1, Ordering::Relaxed);
        self.memory.subtract(self.bytes);
        self.memory.all.queued_messages.decrement(1.0);
        self.memory.all.queued_bytes.decrement(self.bytes as f64);
    }
}

impl Drop for SessionBytes {
    fn drop(&mut self) {
        self.memory.subtract(self.bytes);
    }
}

impl fmt::Debug for ApplicationMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ApplicationMemory").field("app_id", &self.app_id).field("used", &self.used).finish()
    }
}
