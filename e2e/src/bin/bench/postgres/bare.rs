//! What a client of PostgreSQL reaches that does nothing else.

use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

const SPAN: Duration = Duration::from_secs(3);
const TABLE: &str = "CREATE TABLE bare (revision bigint PRIMARY KEY, at bigint NOT NULL, resource text NOT NULL, \
                     path text NOT NULL, json bytea NOT NULL)";
const INSERT: &str =
    "INSERT INTO bare SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bytea[])";

/// Rows of `size` bytes per second, so many in a statement, each statement on the disk before the next.
pub async fn rows(url: &str, size: usize, batch: f64) -> anyhow::Result<f64> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let speaking = tokio::spawn(connection);
    client.batch_execute(TABLE).await?;
    let insert = client.prepare(INSERT).await?;
    let json = vec![b'x'; size];
    let (begun, mut wanted, mut count) = (Instant::now(), 0.0, 0_u32);
    while begun.elapsed() < SPAN {
        let before = count;
        // The middle need not be a whole number; all of them together come as near as they can.
        wanted += batch.max(1.0);
        while f64::from(count) + 0.5 < wanted {
            count += 1;
        }
        let revisions: Vec<i64> = (before..count).map(i64::from).collect();
        let ats = vec![1_700_000_000_000_i64; revisions.len()];
        let resources = vec!["tasks.muster.dev"; revisions.len()];
        let paths: Vec<String> = revisions.iter().map(|number| format!("default/bench-{number}")).collect();
        let jsons = vec![json.as_slice(); revisions.len()];
        client.execute(&insert, &[&revisions, &ats, &resources, &paths, &jsons]).await?;
    }
    let rate = f64::from(count) / begun.elapsed().as_secs_f64();
    drop(client);
    speaking.await??;
    Ok(rate)
}
