//! The owner charged for the bodies and responses of a request.

use crate::{
    ledger::{Owner, Owners},
    usage::Tenant,
};

const USER: &str = "user";
const APPLICATION: &str = "application";

/// The owner of a known caller: a user, whichever of its applications it calls for.
pub(super) fn owner_of_caller(caller: &Tenant, owners: Option<&Owners>) -> Owner {
    let mut parts = caller.name.splitn(3, '\n');
    let [_issuer, kind, id] = [parts.next(), parts.next(), parts.next()];
    let application = || match (kind, id?.parse()) {
        (Some(APPLICATION), Ok(app_id)) => {
            Some(owners.map_or_else(|| Owner::from(&app_id), |known| known.last(&app_id)))
        }
        _ => None,
    };
    match (kind, id) {
        (Some(USER), Some(id)) => Owner::User(id.into()),
        _ => application().unwrap_or_else(|| Owner::Component(caller.name.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_token_is_its_user_or_that_of_its_application() {
        let owner = |name: &str| owner_of_caller(&Tenant::new(name), None);
        assert_eq!(owner("local\nuser\nalice"), Owner::User("alice".into()));
        assert_eq!(owner("local\napplication\nmy-app"), Owner::Application("my-app".into()));
        for component in ["local\nbroker\nb", "broker\nb", "key"] {
            assert_eq!(owner(component), Owner::Component(component.into()));
        }
    }
}
