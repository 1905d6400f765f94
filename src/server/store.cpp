#include "server/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"

namespace hone::server {
namespace {

constexpr int kVersion = 1;
constexpr int kBusyMs = 5000;
constexpr const char* kSchema = R"(
CREATE TABLE jobs (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, token TEXT NOT NULL,
                   kind TEXT NOT NULL, key TEXT, request_hash TEXT NOT NULL, priority INTEGER NOT NULL,
                   timeout_s REAL NOT NULL, queue_timeout_s REAL, body TEXT NOT NULL, state TEXT NOT NULL,
                   lease INTEGER NOT NULL DEFAULT 0, cancel_asked INTEGER NOT NULL DEFAULT 0,
                   accepted TEXT NOT NULL, started TEXT NOT NULL DEFAULT '', ended TEXT NOT NULL DEFAULT '',
                   queued_s REAL NOT NULL DEFAULT 0, ran_s REAL NOT NULL DEFAULT 0, result TEXT,
                   UNIQUE (token, key)) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, number);
CREATE INDEX jobs_by_token ON jobs (token, number);
CREATE TABLE events (job TEXT NOT NULL, n INTEGER NOT NULL, time TEXT NOT NULL, name TEXT NOT NULL, data TEXT NOT NULL,
                     PRIMARY KEY (job, n)) STRICT, WITHOUT ROWID;
CREATE TABLE blobs (sha256 TEXT PRIMARY KEY, bytes INTEGER NOT NULL, used INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE blob_owners (sha256 TEXT NOT NULL, token TEXT NOT NULL, PRIMARY KEY (sha256, token)) STRICT, WITHOUT ROWID;
CREATE TABLE job_blobs (job TEXT NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (sha256, job)) STRICT, WITHOUT ROWID;
CREATE TABLE uses (n INTEGER NOT NULL) STRICT;
INSERT INTO uses VALUES (0);
)";
constexpr const char* kJobColumns =
    "number, id, token, kind, key, priority, timeout_s, queue_timeout_s, body, state, lease, cancel_asked, accepted, "
    "started, ended, queued_s, ran_s, result";

Error to_error(const SQLite::Exception& exception) {
  const int code = exception.getErrorCode();
  if (code == SQLITE_FULL) return make_error(ErrorKind::io, "the service's database cannot grow: {}", exception.what()).with_hint("free space in the folder given by --data");
  return make_error(code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? ErrorKind::contract : ErrorKind::io,
                    "the service's database: {}", exception.what());
}

std::string dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string fresh_id() { return fmt::format("j-{:016x}", random_seed()); }

std::string hash_of(const JobRequest& request) {
  return FieldHash()
      .add(request.kind)
      .add(std::to_string(request.priority))
      .add(fmt::format("{} {}", request.timeout_s, request.queue_timeout_s.value_or(-1)))
      .add(dump(request.body))
      .hex();
}

JobState state_from(const std::string& name) {
  for (const JobState state : {JobState::queued, JobState::running, JobState::done})
    if (name == name_of(state)) return state;
  return JobState::cancelled;
}

Job job_from(SQLite::Statement& row) {
  Job job;
  job.number = row.getColumn(0).getInt64();
  job.id = row.getColumn(1).getString();
  job.request.token = row.getColumn(2).getString();
  job.request.kind = row.getColumn(3).getString();
  if (!row.getColumn(4).isNull()) job.request.key = row.getColumn(4).getString();
  job.request.priority = row.getColumn(5).getInt();
  job.request.timeout_s = row.getColumn(6).getDouble();
  if (!row.getColumn(7).isNull()) job.request.queue_timeout_s = row.getColumn(7).getDouble();
  job.request.body = nlohmann::json::parse(row.getColumn(8).getString(), nullptr, false);
  job.state = state_from(row.getColumn(9).getString());
  job.lease = row.getColumn(10).getInt64();
  job.cancel_asked = row.getColumn(11).getInt() != 0;
  job.accepted = row.getColumn(12).getString();
  job.started = row.getColumn(13).getString();
  job.ended = row.getColumn(14).getString();
  job.queued_s = row.getColumn(15).getDouble();
  job.ran_s = row.getColumn(16).getDouble();
  if (!row.getColumn(17).isNull()) job.result = nlohmann::json::parse(row.getColumn(17).getString(), nullptr, false);
  return job;
}

template <class... Values>
SQLite::Statement bound(const SQLite::Database& database, const char* sql, const Values&... values) {
  SQLite::Statement statement(database, sql);
  int index = 0;
  (statement.bind(++index, values), ...);
  return statement;
}

std::vector<Job> jobs_of(SQLite::Statement statement, const SQLite::Database& database) {
  std::vector<Job> out;
  while (statement.executeStep()) out.push_back(job_from(statement));
  for (Job& job : out) {
    SQLite::Statement blobs = bound(database, "SELECT sha256 FROM job_blobs WHERE job = ? ORDER BY sha256", job.id);
    while (blobs.executeStep()) job.request.blobs.push_back(blobs.getColumn(0).getString());
  }
  return out;
}

void insert_event(const SQLite::Database& database, const std::string& job, const std::string& name, const nlohmann::json& data) {
  bound(database,
        "INSERT INTO events SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4 FROM events WHERE job = ?1", job,
        utc_timestamp(), name, dump(data))
      .exec();
}

// What a job that changed nothing says.
Error not_so(const SQLite::Database& database, const std::string& job, const char* wanted) {
  SQLite::Statement row = bound(database, "SELECT state, lease FROM jobs WHERE id = ?", job);
  if (!row.executeStep()) return make_error(ErrorKind::not_found, "there is no job {}", job);
  return make_error(ErrorKind::conflict, "job {} is {} under lease {}, and so cannot {}", job,
                    row.getColumn(0).getString(), row.getColumn(1).getInt64(), wanted);
}

}  // namespace

std::string_view name_of(JobState state) {
  switch (state) {
    case JobState::queued: return "queued";
    case JobState::running: return "running";
    case JobState::done: return "done";
    case JobState::cancelled: return "cancelled";
  }
  return "";
}

class Store::Impl {
 public:
  explicit Impl(const fs::path& path)
      : writer_(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyMs),
        prepared_(prepare(writer_)),
        reader_(path.string(), SQLite::OPEN_READONLY, kBusyMs),
        thread_([this] { serve(); }) {}
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  using Apply = std::function<Result<>(SQLite::Database&)>;

  // Returns when the change is on disk, or undone.
  Result<> change(Apply apply) {
    std::future<Result<>> done;
    {
      const std::lock_guard lock(mutex_);
      done = waiting_.emplace_back(std::move(apply)).done.get_future();
    }
    wake_.notify_one();
    return done.get();
  }

  template <class Value, class Read>
  Result<Value> read(Read get) const {
    const std::lock_guard lock(reading_);
    try {
      return get(reader_);
    } catch (const SQLite::Exception& exception) {
      return fail(to_error(exception));
    }
  }

 private:
  struct Change {
    explicit Change(Apply what) : apply(std::move(what)) {}
    Apply apply;
    std::promise<Result<>> done;
  };

  static bool prepare(SQLite::Database& database) {
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = FULL");
    const int version = database.execAndGet("PRAGMA user_version").getInt();
    if (version > kVersion)
      throw SQLite::Exception(fmt::format("it is of version {}, made by a later Hone", version), SQLITE_NOTADB);
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    if (version == 0) {
      database.exec(kSchema);
      database.exec(fmt::format("PRAGMA user_version = {}", kVersion));
    }
    // Their lease died with the server that gave it.
    database.exec("UPDATE jobs SET state = 'queued' WHERE state = 'running'");
    transaction.commit();
    return true;
  }

  // Undone alone when it fails.
  static Result<> apply_alone(SQLite::Database& database, const Apply& apply) {
    database.exec("SAVEPOINT change");
    Result<> result;
    try {
      result = apply(database);
    } catch (const SQLite::Exception& exception) {
      result = fail(to_error(exception));
    }
    if (!result) database.exec("ROLLBACK TO change");
    database.exec("RELEASE change");
    return result;
  }

  void serve() {
    for (;;) {
      std::vector<Change> batch;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        batch.swap(waiting_);
      }
      std::vector<Result<>> results;
      try {
        SQLite::Transaction transaction(writer_, SQLite::TransactionBehavior::IMMEDIATE);
        for (const Change& change : batch) results.push_back(apply_alone(writer_, change.apply));
        transaction.commit();
      } catch (const SQLite::Exception& exception) {
        // Nothing of the batch is on disk.
        results.assign(batch.size(), fail(to_error(exception)));
      }
      for (std::size_t i = 0; i < batch.size(); ++i) batch[i].done.set_value(std::move(results[i]));
    }
  }

  SQLite::Database writer_;
  bool prepared_;
  mutable std::mutex reading_;
  mutable SQLite::Database reader_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Change> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(const fs::path& database) {
  HONE_CHECK(make_dirs(database.parent_path()));
  try {
    return std::unique_ptr<Store>(new Store(std::make_unique<Impl>(database)));
  } catch (const SQLite::Exception& exception) {
    Error error = to_error(exception);
    error.place = {database.string()};
    return fail(std::move(error));
  }
}

Result<Accepted> Store::accept(const JobRequest& request, const std::function<Result<>()>& may) {
  Accepted out;
  HONE_CHECK(impl_->change([&](SQLite::Database& database) -> Result<> {
    const std::string hash = hash_of(request);
    if (!request.key.empty()) {
      SQLite::Statement known = bound(database, "SELECT id, request_hash FROM jobs WHERE token = ? AND key = ?", request.token, request.key);
      if (known.executeStep()) {
        if (known.getColumn(1).getString() != hash)
          return fail(make_error(ErrorKind::conflict, "the idempotency key {} belongs to job {}, which asks for something else", request.key, known.getColumn(0).getString())
                          .with_hint("use a new key for a new request"));
        out.job.id = known.getColumn(0).getString();
        out.repeated = true;
        return {};
      }
    }
    if (Result<> allowed = may ? may() : Result<>(); !allowed) return allowed;
    out.job.id = fresh_id();
    SQLite::Statement insert(database,
                             "INSERT INTO jobs (id, token, kind, key, request_hash, priority, timeout_s, queue_timeout_s, body, state, accepted) "
                             "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?)");
    insert.bind(1, out.job.id);
    insert.bind(2, request.token);
    insert.bind(3, request.kind);
    if (!request.key.empty()) insert.bind(4, request.key);
    insert.bind(5, hash);
    insert.bind(6, request.priority);
    insert.bind(7, request.timeout_s);
    if (request.queue_timeout_s) insert.bind(8, *request.queue_timeout_s);
    insert.bind(9, dump(request.body));
    insert.bind(10, utc_timestamp());
    insert.exec();
    for (const std::string& blob : request.blobs) {
      SQLite::Statement readable = bound(database, "SELECT 1 FROM blob_owners WHERE sha256 = ? AND token = ?", blob, request.token);
      if (!readable.executeStep())
        return fail(make_error(ErrorKind::not_found, "blob {} is not here", blob).with_hint("put it to /v1/blobs first"));
      bound(database, "INSERT OR IGNORE INTO job_blobs VALUES (?, ?)", out.job.id, blob).exec();
      database.exec("UPDATE uses SET n = n + 1");
      bound(database, "UPDATE blobs SET used = (SELECT n FROM uses) WHERE sha256 = ?", blob).exec();
    }
    insert_event(database, out.job.id, "queued", request.request_id.empty() ? nlohmann::json::object() : nlohmann::json{{"request_id", request.request_id}});
    return {};
  }));
  HONE_TRY(out.job, job(out.job.id));
  return out;
}

Result<std::int64_t> Store::start(const std::string& job, double waited_s) {
  std::int64_t lease = 0;
  HONE_CHECK(impl_->change([&](SQLite::Database& database) -> Result<> {
    SQLite::Statement update = bound(database,
                                     "UPDATE jobs SET state = 'running', lease = lease + 1, started = ?, queued_s = queued_s + ? "
                                     "WHERE id = ? AND state = 'queued' RETURNING lease",
                                     utc_timestamp(), waited_s, job);
    if (!update.executeStep()) return fail(not_so(database, job, "start"));
    lease = update.getColumn(0).getInt64();
    insert_event(database, job, "leased", {{"lease", lease}});
    return {};
  }));
  return lease;
}

Result<> Store::requeue(const std::string& job, std::int64_t lease) {
  return impl_->change([&](SQLite::Database& database) -> Result<> {
    if (bound(database, "UPDATE jobs SET state = 'queued' WHERE id = ? AND state = 'running' AND lease = ?", job, lease).exec() == 0)
      return fail(not_so(database, job, "be queued again"));
    insert_event(database, job, "queued", {{"again", true}});
    return {};
  });
}

Result<> Store::finish(const std::string& job, std::int64_t lease, JobState state, const nlohmann::json& result, double ran_s) {
  return impl_->change([&](SQLite::Database& database) -> Result<> {
    if (bound(database, "UPDATE jobs SET state = ?, result = ?, ended = ?, ran_s = ? WHERE id = ? AND state = 'running' AND lease = ?",
              std::string(name_of(state)), dump(result), utc_timestamp(), ran_s, job, lease)
            .exec() == 0)
      return fail(not_so(database, job, "end"));
    insert_event(database, job, std::string(name_of(state)), nlohmann::json::object());
    return {};
  });
}

Result<> Store::end_unstarted(const std::string& job, JobState state, const nlohmann::json& result, double waited_s) {
  return impl_->change([&](SQLite::Database& database) -> Result<> {
    if (bound(database, "UPDATE jobs SET state = ?, result = ?, ended = ?, queued_s = queued_s + ? WHERE id = ? AND state = 'queued'",
              std::string(name_of(state)), dump(result), utc_timestamp(), waited_s, job)
            .exec() == 0)
      return fail(not_so(database, job, "end before it has begun"));
    insert_event(database, job, std::string(name_of(state)), nlohmann::json::object());
    return {};
  });
}

Result<bool> Store::ask_cancel(const std::string& job) {
  bool alive = false;
  HONE_CHECK(impl_->change([&](SQLite::Database& database) -> Result<> {
    alive = bound(database, "UPDATE jobs SET cancel_asked = 1 WHERE id = ? AND state IN ('queued', 'running')", job).exec() != 0;
    if (alive) return {};
    SQLite::Statement row = bound(database, "SELECT 1 FROM jobs WHERE id = ?", job);
    if (!row.executeStep()) return fail(ErrorKind::not_found, "there is no job {}", job);
    return {};
  }));
  return alive;
}

Result<> Store::add_event(const std::string& job, const std::string& name, const nlohmann::json& data) {
  return impl_->change([&](SQLite::Database& database) -> Result<> {
    insert_event(database, job, name, data);
    return {};
  });
}

Result<Job> Store::job(const std::string& id, const std::optional<std::string>& token) const {
  return impl_->read<Result<Job>>([&](const SQLite::Database& database) -> Result<Job> {
    const std::string sql = fmt::format("SELECT {} FROM jobs WHERE id = ?", kJobColumns);
    std::vector<Job> found = jobs_of(bound(database, sql.c_str(), id), database);
    // Another token's job looks like none.
    if (found.empty() || (token && found.front().request.token != *token)) return fail(ErrorKind::not_found, "there is no job {}", id);
    return std::move(found.front());
  }).and_then([](Result<Job> job) { return job; });
}

Result<std::vector<Job>> Store::jobs(const std::optional<std::string>& token, std::size_t limit, std::optional<std::int64_t> before) const {
  return impl_->read<std::vector<Job>>([&](const SQLite::Database& database) {
    const std::string sql = fmt::format("SELECT {} FROM jobs WHERE number < ? AND (? = '' OR token = ?2) ORDER BY number DESC LIMIT ?", kJobColumns);
    return jobs_of(bound(database, sql.c_str(), before.value_or(INT64_MAX), token.value_or(""), static_cast<std::int64_t>(limit)), database);
  });
}

Result<std::vector<Job>> Store::queued() const {
  return impl_->read<std::vector<Job>>([&](const SQLite::Database& database) {
    const std::string sql = fmt::format("SELECT {} FROM jobs WHERE state = 'queued' ORDER BY number", kJobColumns);
    return jobs_of(bound(database, sql.c_str()), database);
  });
}

Result<std::vector<Event>> Store::events(const std::string& job, std::int64_t after) const {
  return impl_->read<std::vector<Event>>([&](const SQLite::Database& database) {
    SQLite::Statement rows = bound(database, "SELECT n, time, name, data FROM events WHERE job = ? AND n > ? ORDER BY n", job, after);
    std::vector<Event> out;
    while (rows.executeStep())
      out.push_back({rows.getColumn(0).getInt64(), rows.getColumn(1).getString(), rows.getColumn(2).getString(),
                     nlohmann::json::parse(rows.getColumn(3).getString(), nullptr, false)});
    return out;
  });
}

Result<double> Store::ran_s(const std::string& token, const std::string& since) const {
  return impl_->read<double>([&](const SQLite::Database& database) {
    SQLite::Statement sum = bound(database, "SELECT COALESCE(SUM(ran_s), 0.0) FROM jobs WHERE token = ? AND ended >= ?", token, since);
    sum.executeStep();
    return sum.getColumn(0).getDouble();
  });
}

Result<> Store::own_blob(const std::string& sha256, std::uint64_t bytes, const std::string& token) {
  return impl_->change([&](SQLite::Database& database) -> Result<> {
    database.exec("UPDATE uses SET n = n + 1");
    bound(database,
          "INSERT INTO blobs SELECT ?, ?, n FROM uses WHERE true ON CONFLICT (sha256) DO UPDATE SET used = excluded.used",
          sha256, static_cast<std::int64_t>(bytes))
        .exec();
    bound(database, "INSERT OR IGNORE INTO blob_owners VALUES (?, ?)", sha256, token).exec();
    return {};
  });
}

Result<bool> Store::may_read_blob(const std::string& sha256, const std::string& token) const {
  return impl_->read<bool>([&](const SQLite::Database& database) {
    return bound(database, "SELECT 1 FROM blob_owners WHERE sha256 = ? AND token = ?", sha256, token).executeStep();
  });
}

Result<std::uint64_t> Store::blob_bytes(const std::optional<std::string>& token) const {
  return impl_->read<std::uint64_t>([&](const SQLite::Database& database) {
    SQLite::Statement sum = bound(database,
                                  "SELECT coalesce(sum(bytes), 0) FROM blobs WHERE ? = '' OR sha256 IN "
                                  "(SELECT sha256 FROM blob_owners WHERE token = ?1)",
                                  token.value_or(""));
    sum.executeStep();
    return static_cast<std::uint64_t>(sum.getColumn(0).getInt64());
  });
}

Result<std::uint64_t> Store::body_bytes(const std::string& token) const {
  return impl_->read<std::uint64_t>([&](const SQLite::Database& database) {
    SQLite::Statement sum = bound(database, "SELECT coalesce(sum(length(body)), 0) FROM jobs WHERE token = ? AND state IN ('queued', 'running')", token);
    sum.executeStep();
    return static_cast<std::uint64_t>(sum.getColumn(0).getInt64());
  });
}

Result<std::vector<std::string>> Store::collect_blobs(std::uint64_t keep_bytes) {
  std::vector<std::string> out;
  HONE_CHECK(impl_->change([&](SQLite::Database& database) -> Result<> {
    std::int64_t bytes = database.execAndGet("SELECT coalesce(sum(bytes), 0) FROM blobs").getInt64();
    SQLite::Statement rows(database,
                           "SELECT sha256, bytes FROM blobs WHERE sha256 NOT IN (SELECT sha256 FROM job_blobs JOIN jobs ON jobs.id = job "
                           "WHERE state IN ('queued', 'running')) ORDER BY used");
    while (bytes > static_cast<std::int64_t>(keep_bytes) && rows.executeStep()) {
      out.push_back(rows.getColumn(0).getString());
      bytes -= rows.getColumn(1).getInt64();
    }
    for (const std::string& blob : out) {
      bound(database, "DELETE FROM blobs WHERE sha256 = ?", blob).exec();
      bound(database, "DELETE FROM blob_owners WHERE sha256 = ?", blob).exec();
      bound(database, "DELETE FROM job_blobs WHERE sha256 = ?", blob).exec();
    }
    return {};
  }));
  return out;
}

Result<std::size_t> Store::drop_old_jobs(std::size_t keep) {
  std::size_t dropped = 0;
  HONE_CHECK(impl_->change([&](SQLite::Database& database) -> Result<> {
    SQLite::Statement rows = bound(database,
                                   "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY token ORDER BY number DESC) AS place FROM jobs "
                                   "WHERE state IN ('done', 'cancelled')) WHERE place > ?",
                                   static_cast<std::int64_t>(keep));
    std::vector<std::string> ids;
    while (rows.executeStep()) ids.push_back(rows.getColumn(0).getString());
    for (const std::string& id : ids) {
      bound(database, "DELETE FROM events WHERE job = ?", id).exec();
      bound(database, "DELETE FROM job_blobs WHERE job = ?", id).exec();
      bound(database, "DELETE FROM jobs WHERE id = ?", id).exec();
    }
    dropped = ids.size();
    return {};
  }));
  return dropped;
}

Result<std::string> Store::check() const {
  return impl_->read<std::string>([&](SQLite::Database& database) { return database.execAndGet("PRAGMA integrity_check").getString(); });
}

}  // namespace hone::server
