//! The settings of the console and their defaults.

mod map_tiles;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{ClientId, UserId};

pub use self::map_tiles::{MapTiles, TileUrl, TileUrlError};

types::settings! {
    /// The settings of the console.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Settings {
        /// True if `airlock serve` has the console, at the address of the account service below `/console`.
        pub enabled: bool = true,
        /// Address that `airlock serve console` listens on, plain HTTP.
        pub listen: String = "127.0.0.1:8090".to_owned(),
        /// The URL at which people reach `airlock serve console`, such as `https://console.example.com`. Defaults to
        /// the listen address.
        pub public_url: Option<String>,
        /// The URL at which people reach the account service, for `airlock serve console`. Defaults to
        /// `client.auth_server`.
        pub account_url: Option<String>,
        /// The id of the console's OAuth client. `airlock serve` creates it; for `airlock serve console`, the account
        /// service needs it in `account.clients`.
        #[schemars(with = "String")]
        pub client_id: ClientId = client_id(),
        /// File with the secret of the OAuth client. Without it, the client is public.
        pub client_secret_file: Option<PathBuf>,
        /// Maximum number of live views that are open at once; one user may have an eighth of them. Each holds at most
        /// 1000 messages.
        pub live_views_max: u64 = 64,
        /// The ids of users who may see the pages of operators, as `airlock account users show` prints them: who uses
        /// what, what waits, and the audit log. Names do not count, because anybody may register a name that is free.
        /// Where `airlock serve` has the console, they are operators of the account service, too: see
        /// `account.operators`, also for who is an operator while no ids are set.
        #[schemars(with = "Vec<String>")]
        #[serde(deserialize_with = "UserId::deserialize_list")]
        pub operators: Vec<UserId>,
        /// A server with tiles for maps: its `url`, such as `https://tile.example.com/{z}/{x}/{y}.png`, and the
        /// `attribution` that maps show. Without it, maps show coarse land, and load nothing from other sites.
        pub map_tiles: Option<MapTiles>,
    }
}

impl Settings {
    /// The path to which the account service redirects.
    pub const CALLBACK: &str = "/console/callback";
}

#[expect(clippy::expect_used, reason = "a constant that a test parses, too")]
fn client_id() -> ClientId {
    "airlock-console".parse().expect("it is an id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_ids_and_not_names() {
        let read = |operators: &[&str]| {
            let json = serde_json::json!({ "operators": operators });
            serde_json::from_value::<Settings>(json).map(|settings| settings.operators.len())
        };
        assert_eq!(read(&["0102030405060708090a0b0c"]).unwrap(), 1);
        let error = read(&["alice"]).unwrap_err().to_string();
        assert!(error.contains("must be ids of users"), "{error}");
        assert!(Settings::default().operators.is_empty());
    }
}
