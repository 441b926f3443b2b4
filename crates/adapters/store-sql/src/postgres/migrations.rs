//! The schema, as numbered steps from nothing to the newest.
//!
//! Steps are never edited once released: add the next one. Each happens in a transaction of its own, one server at a time,
//! while servers of older versions go on. A step says which of them can: `needs` is the oldest schema version whose servers
//! work with what the step makes. So functions are never changed, only added under the next number.

/// One step.
pub(super) struct Migration {
    /// The version a database has afterwards.
    pub version: i32,
    /// Servers that know at least this version can go on.
    pub needs: i32,
    /// How it gets there.
    pub sql: &'static str,
}

/// The table that says which step was the last, for which installation. It is never changed by a step.
pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS muster_schema (
        id integer PRIMARY KEY CHECK (id = 0),
        version integer NOT NULL,
        needs integer NOT NULL,
        installation text NOT NULL,
        identity text NOT NULL
    )";

/// All steps, in order.
pub(super) const ALL: &[Migration] = &[Migration {
    version: 1,
    needs: 1,
    // The header is one row, locked by whoever writes: this is what gives revisions their order. It is written with each
    // transaction, so there is room for many versions of it on its page.
    //
    // A writer is a process. Its sequence grows with each of its appends. An append that comes late, after somebody asked
    // whether it happened and was told no, finds its number used and does nothing.
    sql: "
        CREATE TABLE muster_log (
            revision bigint PRIMARY KEY,
            at bigint NOT NULL,
            resource text NOT NULL,
            path text NOT NULL,
            splice bigint NOT NULL,
            crc bigint NOT NULL,
            json bytea
        );
        CREATE TABLE muster_header (
            id integer PRIMARY KEY CHECK (id = 0),
            revision bigint NOT NULL,
            compacted bigint NOT NULL,
            chain bigint NOT NULL,
            row_count bigint NOT NULL,
            digest bigint NOT NULL
        ) WITH (fillfactor = 10);
        CREATE TABLE muster_writers (
            writer text PRIMARY KEY,
            sequence bigint NOT NULL,
            written boolean NOT NULL,
            seen timestamptz NOT NULL DEFAULT now()
        ) WITH (fillfactor = 10);
        INSERT INTO muster_header VALUES (0, 0, 0, 0, 0, 0);

        CREATE FUNCTION muster_append_1(
            a_writer text, a_sequence bigint, known bigint, known_chain bigint, new_chain bigint,
            revisions bigint[], ats bigint[], resources text[], paths text[], splices bigint[], crcs bigint[],
            jsons bytea[], forgotten bigint[], upto bigint, head_after bigint
        ) RETURNS bigint[] LANGUAGE plpgsql AS $$
        DECLARE
            head muster_header;
            last bigint;
            gone_rows bigint := 0;
            gone_crcs bigint := 0;
            added bigint := cardinality(revisions);
        BEGIN
            SELECT * INTO STRICT head FROM muster_header WHERE id = 0 FOR UPDATE;
            SELECT sequence INTO last FROM muster_writers WHERE writer = a_writer;
            IF last >= a_sequence THEN
                RETURN ARRAY[3, head.revision];
            END IF;
            IF head.revision > known THEN
                RETURN ARRAY[1, head.revision];
            END IF;
            IF head.revision < known OR head.chain <> known_chain THEN
                RETURN ARRAY[2, head.revision];
            END IF;
            INSERT INTO muster_log (revision, at, resource, path, splice, crc, json)
                SELECT * FROM unnest(revisions, ats, resources, paths, splices, crcs, jsons);
            IF cardinality(forgotten) > 0 THEN
                WITH gone AS (DELETE FROM muster_log WHERE revision = ANY (forgotten) RETURNING crc)
                    SELECT count(*), coalesce(sum(crc), 0) INTO gone_rows, gone_crcs FROM gone;
            END IF;
            UPDATE muster_header SET
                revision = head_after,
                compacted = greatest(compacted, upto),
                chain = new_chain,
                row_count = row_count + added - gone_rows,
                digest = digest + (SELECT coalesce(sum(c), 0) FROM unnest(crcs) AS c) - gone_crcs
                WHERE id = 0;
            INSERT INTO muster_writers VALUES (a_writer, a_sequence, true, now())
                ON CONFLICT (writer) DO UPDATE
                SET sequence = excluded.sequence, written = true, seen = excluded.seen;
            IF added > 0 THEN
                PERFORM pg_notify('muster_' || current_schema(), head_after::text);
            END IF;
            RETURN ARRAY[0, head_after];
        END $$;

        CREATE FUNCTION muster_settle_1(a_writer text, a_sequence bigint) RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE
            mine muster_writers;
        BEGIN
            PERFORM 1 FROM muster_header WHERE id = 0 FOR UPDATE;
            SELECT * INTO mine FROM muster_writers WHERE writer = a_writer;
            IF mine.sequence = a_sequence AND mine.written THEN
                RETURN true;
            END IF;
            INSERT INTO muster_writers VALUES (a_writer, a_sequence, false, now())
                ON CONFLICT (writer) DO UPDATE
                SET sequence = excluded.sequence, written = false, seen = excluded.seen;
            RETURN false;
        END $$;
    ",
}];

/// The newest version that this program knows.
pub(super) fn newest() -> i32 {
    ALL.last().map_or(0, |migration| migration.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_from_one_without_a_gap() {
        let versions: Vec<_> = ALL.iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (1..).take(ALL.len()).collect::<Vec<_>>());
    }

    #[test]
    fn no_step_needs_servers_of_the_future() {
        assert!(ALL.iter().all(|migration| (1..=migration.version).contains(&migration.needs)));
    }
}
