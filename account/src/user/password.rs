//! Passwords: rules, hashing and verification.

mod first;
mod threads;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use argon2::{
    Algorithm, Argon2, Params,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use server::ledger::{Budget, Limits, Owner, Resource, Turns};
use types::{Random, Secret, Username};

use self::threads::ThreadPool;
use crate::{Error, Result};

const CHARACTERS_MIN: usize = 8;
const CHARACTERS_MAX: usize = 128;
/// 19 MiB, as OWASP recommends for Argon2id.
const MEMORY_KIB: u32 = 19 * 1024;
/// The number of Argon2 iterations.
const PASSES: u32 = 2;
/// Number of checks that may wait for each running one; half of the places that are left for one owner.
const WAITING_PER_CHECK: usize = 256;

/// Hashes and verifies passwords, a few at a time.
///
/// Further requests wait, up to a limit, and are then refused. So a flood of logins cannot exhaust the memory or block
/// other work. All checks take the same time, so owners take turns: those that have had the fewest go first.
#[derive(Clone)]
pub(crate) struct Passwords {
    turns: Arc<Turns>,
    waiting: Arc<AtomicUsize>,
    waiting_max: usize,
    threads: ThreadPool,
    dummy_hash: Arc<str>,
    random: Arc<dyn Random>,
}

/// A check's place among those that wait, until it is dropped.
struct WaitingCheck(Arc<AtomicUsize>);

pub(crate) type PasswordHashString = String;

/// The most common passwords of 8 or more characters.
const COMMON: &str = include_str!("password/common.txt");

/// Refuses passwords that are too short, too long, or too easy to guess.
pub(crate) fn check(password: &Secret, username: &Username) -> Result<()> {
    let password = password.expose();
    if !(CHARACTERS_MIN..=CHARACTERS_MAX).contains(&password.chars().count()) {
        return Err(Error::Invalid { what: "password", must: "must have 8 to 128 characters" });
    }
    let guess = password.to_ascii_lowercase();
    if guess == username.as_str() || COMMON.lines().any(|common| common == guess) {
        return Err(Error::Invalid { what: "password", must: "must not be a common password" });
    }
    Ok(())
}

impl Passwords {
    /// `checks_max` is the number of parallel checks; zero means one less than the number of cores, but at least one.
    pub(crate) fn new(checks_max: usize, random: Arc<dyn Random>) -> Result<Self> {
        let checks = if checks_max == 0 { default_checks() } else { checks_max };
        let dummy_hash = hash("a password that no user has", &random.array::<16>())?.into();
        Ok(Self {
            turns: Turns::new(Arc::new(Budget::new(Resource::PasswordChecks, limits(checks)))),
            waiting: Arc::default(),
            waiting_max: checks.saturating_mul(WAITING_PER_CHECK),
            threads: ThreadPool::start(checks)?,
            dummy_hash,
            random,
        })
    }

    /// Hashes a password when it is the turn of `owner`.
    pub(crate) async fn hash(&self, owner: &Owner, password: Secret) -> Result<PasswordHashString> {
        let salt = self.random.array::<16>();
        self.run(owner, move || hash(password.expose(), &salt)).await?
    }

    /// Returns true if the password matches the hash, which is checked when it is the turn of `owner`. Without a
    /// hash, takes as long as if there were one. Fails if too many checks wait.
    pub(crate) async fn verify(
        &self,
        owner: &Owner,
        password: Secret,
        hash: Option<PasswordHashString>,
    ) -> Result<bool> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.dummy_hash.to_string());
        // No user has a password this long, so do not spend time on hashing it.
        if password.expose().len() > CHARACTERS_MAX * char::MAX.len_utf8() {
            return Ok(false);
        }
        let matches = self.run(owner, move || verify(password.expose(), &hash)).await??;
        Ok(matches && known)
    }

    async fn run<T: Send + 'static>(&self, owner: &Owner, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let waiting = self.wait(owner)?;
        let turn = self.turns.take(owner).await.ok_or(Error::Busy)?;
        drop(waiting);
        // The work continues if the caller is cancelled, so it must keep the turn.
        let task = move || {
            let done = work();
            drop(turn);
            done
        };
        self.threads.run(task).await
    }

    /// A place to wait; an owner may have as many as it leaves to others.
    fn wait(&self, owner: &Owner) -> Result<WaitingCheck> {
        let waiting = WaitingCheck(Arc::clone(&self.waiting));
        let others = self.waiting.fetch_add(1, Ordering::Relaxed);
        let room = self.waiting_max.saturating_sub(others);
        if self.turns.waiting(owner) >= room { Err(Error::Busy) } else { Ok(waiting) }
    }
}

impl Drop for WaitingCheck {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All checks but one may be of a single owner; if there is only one, whoever has had the fewest gets it.
fn limits(checks: usize) -> Limits {
    let total = checks as u64;
    Limits { total, owner_max: total.saturating_sub(1).max(1), owner_min: 1 }
}

/// One less than the number of cores, for other work.
fn default_checks() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}

fn argon2() -> Result<Argon2<'static>> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).map_err(|_| Error::Crypto("set up Argon2"))?;
    Ok(Argon2::new(Algorithm::Argon2id, argon2::Version::V0x13, params))
}

fn hash(password: &str, salt: &[u8]) -> Result<PasswordHashString> {
    let hash: PasswordHash =
        argon2()?.hash_password_with_salt(password.as_bytes(), salt).map_err(|_| Error::Crypto("hash a password"))?;
    Ok(hash.to_string())
}

fn verify(password: &str, hash: &str) -> Result<bool> {
    let hash = PasswordHash::new(hash).map_err(|_| Error::Crypto("parse a password hash"))?;
    Ok(argon2()?.verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use std::{
        net::IpAddr,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use api::rest::account::NewUser;
    use server::{
        audit::AuditLog,
        seal::{KeyOwner, SealingKeys},
        system::OsRandom,
    };
    use store::Embedded;
    use testing::ManualClock;
    use tokio::task::JoinSet;

    use super::*;
    use crate::{Account, Environment, Settings};

    fn address(last: u8) -> Owner {
        Owner::of_address(IpAddr::from([127, 0, 0, last]))
    }

    #[tokio::test]
    async fn refuses_verifications_when_the_queue_is_full() {
        let passwords = Passwords::new(1, Arc::new(OsRandom)).unwrap();
        let turn = passwords.turns.take(&address(1)).await.unwrap();
        let check = |last| {
            let passwords = passwords.clone();
            Box::pin(async move { passwords.verify(&address(last), Secret::new("a password"), None).await })
        };
        let mut now = Context::from_waker(Waker::noop());
        let mut fill = |last| {
            let mut waiting = Vec::new();
            loop {
                let mut next = check(last);
                match next.as_mut().poll(&mut now) {
                    Poll::Pending => waiting.push(next),
                    Poll::Ready(done) => {
                        assert!(matches!(done, Err(Error::Busy)));
                        return waiting;
                    }
                }
            }
        };
        let mut of_one = fill(2);
        assert_eq!(of_one.len(), WAITING_PER_CHECK / 2, "an address leaves as much to others");
        let of_others: Vec<_> = (3..=20).map(&mut fill).collect();
        assert!(of_others.iter().take(4).all(|waiting| !waiting.is_empty()));
        assert!(of_one.len() + of_others.iter().map(Vec::len).sum::<usize>() <= WAITING_PER_CHECK);
        of_one.pop();
        drop(of_others);
        assert!(pin!(check(2)).poll(&mut now).is_pending(), "who stops waiting makes room");
        drop(turn);
        assert!(!of_one.swap_remove(0).await.unwrap());
    }

    /// Fails if checks are served in the order in which they come.
    #[tokio::test]
    async fn a_login_waits_for_one_check_of_each_address_and_not_for_all_wrong_ones() {
        let passwords = Passwords::new(1, Arc::new(OsRandom)).unwrap();
        let turn = passwords.turns.take(&address(1)).await.unwrap();
        let mut checks = JoinSet::new();
        for last in [1, 1, 1, 1, 1, 1, 2] {
            let passwords = passwords.clone();
            checks.spawn(async move {
                passwords.verify(&address(last), Secret::new("a password"), None).await.unwrap();
                last
            });
        }
        while [address(1), address(2)].iter().map(|owner| passwords.turns.waiting(owner)).sum::<usize>() < 7 {
            tokio::task::yield_now().await;
        }
        drop(turn);
        assert_eq!(checks.join_next().await.unwrap().unwrap(), 2);
    }

    #[test]
    fn wrong_logins_of_one_address_leave_a_slot_to_others() {
        for (checks, of_one) in [(1, 1), (2, 1), (8, 7)] {
            assert_eq!(limits(checks).owner_max, of_one);
        }
    }

    #[tokio::test]
    async fn limits_and_taken_names_come_before_hashing() {
        let clock = ManualClock::new();
        let environment = Environment {
            store: Arc::new(Embedded::in_memory(clock.for_store()).unwrap()),
            clock: clock.clone(),
            random: Arc::new(OsRandom),
            audit: AuditLog::without_file(clock),
        };
        let keys = SealingKeys::new(KeyOwner::Account, &[7; 32]).unwrap();
        let account = Account::open(Settings::default(), keys, environment).await.unwrap();
        let from = IpAddr::from([127, 0, 0, 1]);
        let new = |name: &str| NewUser {
            username: name.parse().unwrap(),
            email: format!("{name}@example.com"),
            password: Secret::new("correct horse battery"),
        };
        account.register(new("alice"), from).await.unwrap();

        // From now on, whatever is to be hashed fails.
        account.passwords.waiting.store(account.passwords.waiting_max, Ordering::Relaxed);
        let log_in = async || account.user_with_password("alice", Secret::new("a password"), from).await.unwrap_err();
        assert!(matches!(log_in().await, Error::Busy), "it is hashed");
        let mut refusal = log_in().await;
        while matches!(refusal, Error::Busy) {
            refusal = log_in().await;
        }
        assert!(matches!(refusal, Error::RateLimited(_)), "{refusal:?}");

        assert!(matches!(account.register(new("alice"), from).await.unwrap_err(), Error::Taken { .. }));
        let mut refusal = account.register(new("bob"), from).await.unwrap_err();
        assert!(matches!(refusal, Error::Busy), "it is hashed");
        while matches!(refusal, Error::Busy) {
            refusal = account.register(new("bob"), from).await.unwrap_err();
        }
        assert!(matches!(refusal, Error::RateLimited(_)), "{refusal:?}");
    }

    #[tokio::test]
    async fn a_hash_matches_only_its_password() {
        let passwords = Passwords::new(1, Arc::new(OsRandom)).unwrap();
        let record = passwords.hash(&address(1), Secret::new("a password")).await.unwrap();
        assert!(passwords.verify(&address(1), Secret::new("a password"), Some(record.clone())).await.unwrap());
        assert!(!passwords.verify(&address(1), Secret::new("a passwore"), Some(record)).await.unwrap());
    }
}
