//! One connection to the database, ready for use.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use muster_ports::store::LogError;
use parking_lot::RwLock;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Error, Statement};

use super::errors::{Words, is_final, tell};
use super::migrations::{self, Migration};
use super::target::Target;

/// How long a connection may take until it is ready.
const READY: Duration = Duration::from_secs(15);
/// Keeps migrations of several servers apart: any number, but always the same.
const MIGRATING: i64 = 0x6d75_7374_6572;
/// What a connection is told about itself. A paused process must not keep others from writing.
const SESSION: &str = "
    SET idle_in_transaction_session_timeout = '5s';
    SET lock_timeout = '10s';
    SET statement_timeout = '30s';
    SET client_min_messages = warning;
    DELETE FROM muster_writers WHERE seen < now() - interval '7 days'";

const APPEND: &str =
    "SELECT muster_append_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
const SETTLE: &str = "SELECT muster_settle_1($1, $2)";
const LOCK: &str = "SELECT revision, chain FROM muster_header WHERE id = 0 FOR UPDATE";
const FOLLOW: &str = "
    SELECT h.revision, h.compacted, h.chain, l.revision, l.at, l.resource, l.path, l.splice, l.crc, l.json
    FROM muster_header h LEFT JOIN muster_log l ON l.revision > $1
    ORDER BY l.revision LIMIT $2";

/// Called when somebody else wrote, or the connection ended.
pub(super) type News = Arc<RwLock<Box<dyn Fn() + Send + Sync>>>;

/// A connection and its statements.
pub(super) struct Link {
    pub client: Client,
    pub append: Statement,
    pub settle: Statement,
    pub lock: Statement,
    pub follow: Statement,
}

/// Why there is no connection.
pub(super) enum NoLink {
    /// It may work later.
    NotNow(LogError),
    /// Somebody has to do something first.
    Never(LogError),
}

impl NoLink {
    pub fn into_error(self) -> LogError {
        match self {
            Self::NotNow(error) | Self::Never(error) => error,
        }
    }

    fn of(words: &Words, error: &Error) -> Self {
        if is_final(error) {
            Self::Never(words.unfit(&tell(error)))
        } else {
            Self::NotNow(words.refused(error))
        }
    }
}

/// What a database says about itself.
pub(super) struct Identity {
    pub installation: String,
    pub identity: String,
}

impl Link {
    /// Connects, brings the schema to what this program needs, and listens.
    pub async fn open(
        target: &Target,
        words: &Words,
        installation: &str,
        news: &News,
    ) -> Result<(Self, Identity), NoLink> {
        match timeout(READY, Self::prepare(target, words, installation, news)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(NoLink::NotNow(words.slow())),
        }
    }

    async fn prepare(
        target: &Target,
        words: &Words,
        installation: &str,
        news: &News,
    ) -> Result<(Self, Identity), NoLink> {
        let failed = |error: Error| NoLink::of(words, &error);
        let (mut client, mut connection) = target.config.connect(target.tls.clone()).await.map_err(failed)?;
        let news = news.clone();
        let (own, mut heard) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let mut own_process = None;
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                own_process = own_process.or_else(|| heard.try_recv().ok());
                if let AsyncMessage::Notification(note) = message
                    && own_process != Some(note.process_id())
                {
                    (news.read())();
                }
            }
            // Whoever follows learns that there is nothing to listen to any more, and polls.
            (news.read())();
        });
        let row = client
            .query_one(
                "SELECT current_setting('server_encoding'), pg_backend_pid(), coalesce(current_schema(), '')",
                &[],
            )
            .await
            .map_err(failed)?;
        let (encoding, process, schema): (&str, i32, &str) = (row.get(0), row.get(1), row.get(2));
        if encoding != "UTF8" {
            let what = format!("its encoding is {encoding}; make one with ENCODING 'UTF8'");
            return Err(NoLink::Never(words.unfit(&what)));
        }
        if schema.is_empty() {
            return Err(NoLink::Never(
                words.unfit("its search_path names no schema that is there; make one"),
            ));
        }
        // The other end goes with the connection, and then nobody needs to know.
        if own.send(process).is_err() {
            return Err(NoLink::NotNow(words.away("the connection was lost")));
        }
        let identity = migrate(&mut client, words, installation, migrations::ALL).await?;
        let listen = format!("LISTEN \"muster_{}\"", schema.replace('"', "\"\""));
        client.batch_execute(&format!("{SESSION}; {listen}")).await.map_err(failed)?;
        // A server may be told not to wait for its disk; what is acknowledged here was written.
        let durable = "SELECT set_config('synchronous_commit', 'on', false)
            WHERE current_setting('synchronous_commit') = 'off'";
        client.execute(durable, &[]).await.map_err(failed)?;
        let (append, settle, lock, follow) = tokio::try_join!(
            client.prepare(APPEND),
            client.prepare(SETTLE),
            client.prepare(LOCK),
            client.prepare(FOLLOW)
        )
        .map_err(failed)?;
        Ok((Self { client, append, settle, lock, follow }, identity))
    }
}

/// Takes the schema from what it is to the newest, unless it is newer than this program can work with.
async fn migrate(
    client: &mut Client,
    words: &Words,
    installation: &str,
    migrations: &[Migration],
) -> Result<Identity, NoLink> {
    let failed = |error: Error| NoLink::of(words, &error);
    let newest = migrations::newest();
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATING]).await.map_err(failed)?;
    let there = transaction
        .query_one("SELECT to_regclass('muster_schema') IS NOT NULL", &[])
        .await
        .map_err(failed)?
        .get::<_, bool>(0);
    if !there {
        transaction.batch_execute(migrations::SCHEMA).await.map_err(failed)?;
        let insert =
            "INSERT INTO muster_schema VALUES (0, 0, 0, $1, md5(random()::text || clock_timestamp()::text))";
        transaction.execute(insert, &[&installation]).await.map_err(failed)?;
    }
    let select = "SELECT version, needs, installation, identity FROM muster_schema WHERE id = 0";
    let row = transaction.query_one(select, &[]).await.map_err(failed)?;
    let (version, needs): (i32, i32) = (row.get(0), row.get(1));
    let identity = Identity { installation: row.get(2), identity: row.get(3) };
    if identity.installation != installation {
        return Err(NoLink::Never(words.of_another(&identity.installation, installation)));
    }
    if needs > newest {
        return Err(NoLink::Never(words.too_new(version, newest)));
    }
    for migration in migrations.iter().filter(|migration| migration.version > version) {
        transaction.batch_execute(migration.sql).await.map_err(failed)?;
        let update = "UPDATE muster_schema SET version = $1, needs = $2 WHERE id = 0";
        transaction.execute(update, &[&migration.version, &migration.needs]).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)?;
    Ok(identity)
}
