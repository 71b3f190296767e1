//! Users as operators see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{AppId, GatewayId, Timestamp};

use super::User;
use crate::rest::json::millis;

/// A user in a list for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedUser {
    /// The profile.
    #[serde(flatten)]
    pub user: User,
    /// True if an operator disabled the user.
    #[serde(default)]
    pub disabled: bool,
}

/// A user with what belongs to them, for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserDetails {
    /// The user, as in the list.
    #[serde(flatten)]
    pub listed: ListedUser,
    /// When the newest session at the account site began. Sessions end after 14 days, or when the user logs out.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "millis::optional")]
    #[schemars(with = "Timestamp")]
    pub last_session: Option<Timestamp>,
    /// The applications to which the user has rights, own and shared ones, in order.
    #[serde(default)]
    pub applications: Vec<AppId>,
    /// The gateways to which the user has rights, own and shared ones, in order.
    #[serde(default)]
    pub gateways: Vec<GatewayId>,
    /// True if these lists lack some that others shared, because there are too many.
    #[serde(default)]
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn what_operators_see_is_beside_the_profile() {
        let json = json!({
            "username": "alice", "email": "alice@example.com", "created": "2026-01-01T00:00:00.000Z", "name": {},
            "valid": true, "_id": "0102030405060708090a0b0c", "disabled": true, "applications": ["her-app"],
            "gateways": [], "more": false,
        });
        let details: UserDetails = from_value(json.clone()).unwrap();
        assert!(details.listed.disabled && details.last_session.is_none());
        assert_eq!(to_value(details).unwrap(), json);
    }
}
