//! The tokens whose signature was found right, so that each is verified once.

use aws_lc_rs::digest::{SHA256, digest};
use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};

/// The most tokens that are remembered, about 100 bytes each. The least recently used is forgotten first, and verified
/// again.
const TOKENS_MAX: usize = 32 * 1024;

/// Tokens that one set of keys has verified. Whether they have ended is not for the signature to say.
pub(super) struct VerifiedTokens(Mutex<LruCache<TokenHash, ()>>);

/// The SHA-256 of a whole token, its signature included.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(super) fn of(token: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(hash)
    }
}

impl Default for VerifiedTokens {
    fn default() -> Self {
        // Room for all of them is taken only when they come.
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl VerifiedTokens {
    pub(super) fn contains(&self, token: TokenHash) -> bool {
        self.lock().get(&token).is_some()
    }

    pub(super) fn insert(&self, token: TokenHash) {
        let mut tokens = self.lock();
        if tokens.len() >= TOKENS_MAX {
            tokens.pop_lru();
        }
        tokens.put(token, ());
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<TokenHash, ()>> {
        // A panic in between leaves a token out, which is then verified again.
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_least_recently_used_token_first() {
        let tokens = VerifiedTokens::default();
        let hash = |number: usize| TokenHash::of(&number.to_string());
        (0..TOKENS_MAX).for_each(|number| tokens.insert(hash(number)));
        assert!(tokens.contains(hash(0)));
        tokens.insert(hash(TOKENS_MAX));
        assert!(tokens.contains(hash(0)) && tokens.contains(hash(TOKENS_MAX)));
        assert!(!tokens.contains(hash(1)));
        assert_eq!(tokens.lock().len(), TOKENS_MAX);
    }
}
