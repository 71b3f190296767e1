//! The table in which ChirpStack's PostgreSQL integration stores uplinks, read with a cursor in a read-only transaction.

mod connect;
mod fault;
mod password;
mod query;
mod table;
mod tls;
pub(crate) mod updates;

use tokio::runtime::Handle;
use tokio_postgres::{Client, Row, Statement};

use self::fault::Fault;
pub use self::{
    connect::{PostgresSettings, is_postgres},
    table::Table,
};
use crate::{Batch, Error, Filter, RecordedUplink, UplinkSource, columns, stored::Name};

/// Number of rows that are fetched at once.
const BATCH_ROWS: usize = 500;
const CURSOR: &str = "replay";

/// The rows of a table. They are read on a thread that may wait.
pub struct Rows {
    client: Client,
    fetch: Statement,
    runtime: Handle,
    /// The number of the next row.
    next: u64,
    server: String,
}

impl Rows {
    /// Connects, and begins to read the rows that are wanted.
    pub async fn open(settings: &PostgresSettings, table: &Table, filter: &Filter) -> Result<Self, Error> {
        let (client, server) = connect::connect(settings).await?;
        let fault = |error| Fault { server: &server, table }.of_query(error);
        let begin = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";
        client.batch_execute(begin).await.map_err(fault)?;
        let (sql, values) = query::select(table, filter);
        let declare = format!("DECLARE {CURSOR} NO SCROLL CURSOR FOR {sql}");
        client.execute(&declare, &query::borrowed(&values)).await.map_err(fault)?;
        let fetch = client.prepare(&format!("FETCH {BATCH_ROWS} FROM {CURSOR}")).await.map_err(fault)?;
        Ok(Self { client, fetch, runtime: Handle::current(), next: 1, server })
    }
}

impl UplinkSource for Rows {
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        let rows = self.runtime.block_on(self.client.query(&self.fetch, &[]));
        let rows = rows.map_err(|error| fault::while_reading(&self.server, self.next - 1, error))?;
        let first = self.next;
        self.next += rows.len() as u64;
        Ok((!rows.is_empty()).then(|| Batch::uplinks(first, rows.iter().map(|row| uplink(row).map(Some)).collect())))
    }

    fn unit(&self) -> &'static str {
        "row"
    }
}

/// The uplink of a row of [`query::select`].
fn uplink(row: &Row) -> Result<RecordedUplink, String> {
    let text = |column: usize| row.try_get::<_, Option<String>>(column);
    let read = || {
        let application = Name::new(text(1)?, text(2)?);
        let device = Name::new(text(3)?, text(4)?);
        let payload = row.try_get::<_, Option<Vec<u8>>>(5)?.unwrap_or_default();
        let port: Option<i32> = row.try_get(6)?;
        let micros: Option<i64> = row.try_get(7)?;
        let profile = Name::new(text(9)?, text(10)?);
        Ok((text(0)?, application, device, profile, payload, port, micros, text(8)?))
    };
    let (id, application, device, profile, payload, port, micros, object) =
        read().map_err(|error: tokio_postgres::Error| format!("it cannot be read: {error}"))?;
    let port = u8::try_from(port.unwrap_or_default()).map_err(|_| "its port is not a number from 0 to 255")?;
    Ok(RecordedUplink {
        id: id.unwrap_or_default(),
        application,
        device,
        payload,
        port,
        time: micros.map(|micros| types::Timestamp::from_nanos(micros.saturating_mul(1000))),
        object: object.as_deref().map(columns::object).transpose()?.flatten(),
        profile,
        ..RecordedUplink::default()
    })
}
