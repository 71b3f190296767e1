//! Passwords: rules, hashing and verification.

mod threads;

use std::sync::Arc;

use argon2::{
    Algorithm, Argon2, Params,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use types::{Random, Secret, Username};

use self::threads::ThreadPool;
use crate::{Error, Result};

const CHARACTERS_MIN: usize = 8;
const CHARACTERS_MAX: usize = 128;
/// 19 MiB, as OWASP recommends for Argon2id.
const MEMORY_KIB: u32 = 19 * 1024;
/// The number of Argon2 iterations.
const PASSES: u32 = 2;
/// How many checks may wait for each running one.
const WAITING_PER_CHECK: usize = 32;

/// Hashes and verifies passwords, a few at a time.
///
/// Further requests wait, up to a limit, and are then refused. So a flood of logins cannot exhaust the memory or block
/// other work.
#[derive(Clone)]
pub(crate) struct Passwords {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    threads: ThreadPool,
    dummy_hash: Arc<str>,
    random: Arc<dyn Random>,
}

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
            running: Arc::new(Semaphore::new(checks)),
            waiting: Arc::new(Semaphore::new(checks.saturating_mul(WAITING_PER_CHECK + 1).min(Semaphore::MAX_PERMITS))),
            threads: ThreadPool::start(checks)?,
            dummy_hash,
            random,
        })
    }

    pub(crate) async fn hash(&self, password: Secret) -> Result<PasswordHashString> {
        let salt = self.random.array::<16>();
        self.run(move || hash(password.expose(), &salt)).await?
    }

    /// Whether the password matches the hash. Without a hash, takes as long as if there were one.
    pub(crate) async fn verify(&self, password: Secret, hash: Option<PasswordHashString>) -> Result<bool> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.dummy_hash.to_string());
        // No user has a password this long, so do not spend time on hashing it.
        if password.expose().len() > CHARACTERS_MAX * char::MAX.len_utf8() {
            return Ok(false);
        }
        let matches = self.run(move || verify(password.expose(), &hash)).await??;
        Ok(matches && known)
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let queued = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| Error::Busy)?;
        let turn = Arc::clone(&self.running).acquire_owned().await.map_err(|_| Error::Busy)?;
        // The work continues if the caller is cancelled, so it must keep the permits.
        let held: [OwnedSemaphorePermit; 2] = [queued, turn];
        let task = move || {
            let done = work();
            drop(held);
            done
        };
        self.threads.run(task).await
    }
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

    use super::*;
    use crate::{Account, Environment, Settings};

    #[tokio::test]
    async fn refuses_verifications_when_the_queue_is_full() {
        let passwords = Passwords::new(1, Arc::new(OsRandom)).unwrap();
        let turn = Arc::clone(&passwords.running).acquire_owned().await.unwrap();
        let check = || Box::pin(passwords.verify(Secret::new("a password"), None));
        let mut now = Context::from_waker(Waker::noop());
        let mut waiting: Vec<_> = (0..=WAITING_PER_CHECK).map(|_| check()).collect();
        for check in &mut waiting {
            assert!(check.as_mut().poll(&mut now).is_pending());
        }
        assert!(matches!(pin!(check()).poll(&mut now), Poll::Ready(Err(Error::Busy))));
        waiting.pop();
        assert!(pin!(check()).poll(&mut now).is_pending(), "who stops waiting makes room");
        drop(turn);
        assert!(!waiting.swap_remove(0).await.unwrap());
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
        let everything = u32::try_from(account.passwords.waiting.available_permits()).unwrap();
        let _busy = account.passwords.waiting.acquire_many(everything).await.unwrap();
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
        let record = passwords.hash(Secret::new("a password")).await.unwrap();
        assert!(passwords.verify(Secret::new("a password"), Some(record.clone())).await.unwrap());
        assert!(!passwords.verify(Secret::new("a passwore"), Some(record)).await.unwrap());
    }
}
