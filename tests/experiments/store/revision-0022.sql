BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0022');
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	who VARCHAR(64) NOT NULL, 
	what VARCHAR(64) NOT NULL, 
	subject VARCHAR(64) NOT NULL, 
	why TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "audit" VALUES(1,1.0,'ann','halt','','of before');
CREATE TABLE balance (
	campaign_id VARCHAR(32) NOT NULL, 
	request_class TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	until FLOAT NOT NULL, 
	experience JSON NOT NULL, 
	document JSON NOT NULL, 
	PRIMARY KEY (campaign_id, request_class)
);
CREATE TABLE campaign (
	id VARCHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	reason TEXT NOT NULL, 
	definition JSON NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	run INTEGER NOT NULL, 
	run_started_at FLOAT, 
	next_run_at FLOAT, 
	ended_at FLOAT, 
	certificates JSON NOT NULL, 
	held JSON NOT NULL, ending JSON, 
	PRIMARY KEY (id)
);
INSERT INTO "campaign" VALUES('c','','finished','','{}','',1.0,0,NULL,NULL,NULL,X'78018BAE564ACE492C2E56B25272770D51D057AA8D05003CE105B8','[]',NULL);
CREATE TABLE certificate_leaf (
	place INTEGER NOT NULL, 
	campaign_id VARCHAR(32) NOT NULL, 
	request_class TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	signed_with TEXT NOT NULL, 
	hashed VARCHAR(64) NOT NULL, 
	PRIMARY KEY (place)
);
CREATE TABLE checkpoint (
	request_class TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (request_class, version)
);
CREATE TABLE delivery (
	notification_id INTEGER NOT NULL, 
	target VARCHAR(64) NOT NULL, 
	ended_at FLOAT, 
	error TEXT, 
	PRIMARY KEY (notification_id, target)
);
CREATE TABLE experiment (
	id VARCHAR(32) NOT NULL, 
	campaign_id VARCHAR(32) NOT NULL, 
	run INTEGER NOT NULL, 
	request_class TEXT NOT NULL, 
	active_class TEXT, 
	purpose VARCHAR(16) NOT NULL, 
	hypothesis JSON NOT NULL, 
	faults JSON NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	verdict VARCHAR(16), 
	reason TEXT NOT NULL, 
	risk FLOAT NOT NULL, 
	approved_by VARCHAR(64), 
	level FLOAT, 
	allocation JSON NOT NULL, 
	members_reserved INTEGER NOT NULL, 
	members_charged INTEGER NOT NULL, 
	members_hurt INTEGER NOT NULL, 
	created_at FLOAT NOT NULL, 
	armed_at FLOAT, 
	lease_until FLOAT, 
	ended_at FLOAT, 
	comparison JSON NOT NULL, 
	lesson JSON, draft JSON, tried VARCHAR(16), open_before INTEGER, 
	PRIMARY KEY (id), 
	UNIQUE (active_class)
);
CREATE TABLE finding (
	id VARCHAR(16) NOT NULL, 
	request_class TEXT NOT NULL, 
	faults JSON NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	found_at FLOAT NOT NULL, 
	verified_at FLOAT, 
	campaign_id VARCHAR(32) NOT NULL, 
	experiment_id VARCHAR(32) NOT NULL, 
	traces JSON NOT NULL, note TEXT, tracker_url TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "finding" VALUES('f','GET /','["down@db"]','open',1.0,NULL,'c','e','[]',NULL,NULL);
CREATE TABLE flag (
	name VARCHAR(32) NOT NULL, 
	value JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "flag" VALUES('arming','{}');
INSERT INTO "flag" VALUES('halted','{"reason": "of before"}');
CREATE TABLE idempotency (
	caller VARCHAR(64) NOT NULL, 
	"key" VARCHAR(128) NOT NULL, 
	request VARCHAR(64) NOT NULL, 
	at FLOAT NOT NULL, 
	status INTEGER, 
	answer JSON, 
	PRIMARY KEY (caller, "key")
);
CREATE TABLE injector (
	caller VARCHAR(255) NOT NULL, 
	document JSON NOT NULL, 
	PRIMARY KEY (caller)
);
CREATE TABLE maintenance (
	id VARCHAR(32) NOT NULL, 
	owner VARCHAR(64) NOT NULL, 
	reason TEXT NOT NULL, 
	down JSON NOT NULL, 
	opened_at FLOAT NOT NULL, 
	until FLOAT NOT NULL, 
	closed_at FLOAT, 
	PRIMARY KEY (id)
);
CREATE TABLE namespace (
	name VARCHAR(30) NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	max_concurrent INTEGER, 
	members_per_hour INTEGER, 
	members_per_day INTEGER, 
	PRIMARY KEY (name)
);
CREATE TABLE notification (
	id INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	event VARCHAR(32) NOT NULL, 
	document JSON NOT NULL, 
	delivered_at FLOAT, 
	error TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "notification" VALUES(1,1.0,'halted','{"title": "Everything is halted", "text": "by ann: of before", "details": {}, "by": "ann"}',NULL,NULL);
INSERT INTO "notification" VALUES(2,1.0,'finding','{"title": "title", "text": "text", "details": {}, "by": "ann"}',NULL,NULL);
CREATE TABLE position (
	topic VARCHAR(255) NOT NULL, 
	partition INTEGER NOT NULL, 
	next_offset BIGINT NOT NULL, 
	read_from BIGINT NOT NULL, 
	PRIMARY KEY (topic, partition)
);
CREATE TABLE pruned_tally (
	campaign_id VARCHAR(32) NOT NULL, 
	purpose VARCHAR(16) NOT NULL, 
	verdict VARCHAR(16) NOT NULL, 
	ended INTEGER NOT NULL, 
	armed INTEGER NOT NULL, 
	hurt BIGINT NOT NULL, 
	PRIMARY KEY (campaign_id, purpose, verdict)
);
CREATE TABLE remains (
	"key" VARCHAR(32) NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE replay (
	id VARCHAR(32) NOT NULL, 
	kept_at FLOAT NOT NULL, 
	kept_by VARCHAR(64) NOT NULL, 
	verdict VARCHAR(16), 
	document JSON NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE request_class (
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	document JSON NOT NULL, 
	updated_at FLOAT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE run_count (
	place INTEGER NOT NULL, 
	request_class TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	runs INTEGER NOT NULL, 
	PRIMARY KEY (place)
);
CREATE TABLE run_count_node (
	level INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	hashed VARCHAR(64) NOT NULL, 
	PRIMARY KEY (level, place)
);
CREATE TABLE run_record (
	leaf INTEGER NOT NULL, 
	experiment_id VARCHAR(32) NOT NULL, 
	request_class TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	nodes TEXT NOT NULL, remains TEXT, 
	PRIMARY KEY (leaf), 
	UNIQUE (experiment_id)
);
CREATE TABLE tally (
	campaign_id VARCHAR(32) NOT NULL, 
	purpose VARCHAR(16) NOT NULL, 
	verdict VARCHAR(16) NOT NULL, 
	ended INTEGER NOT NULL, 
	armed INTEGER NOT NULL, 
	hurt BIGINT NOT NULL, 
	PRIMARY KEY (campaign_id, purpose, verdict)
);
CREATE TABLE token (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	created_by VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	expires_at FLOAT, 
	revoked BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
CREATE TABLE tree_head (
	id INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX ix_campaign_state ON campaign (state);
CREATE INDEX experiment_by_class ON experiment (request_class, ended_at);
CREATE INDEX ix_experiment_armed_at ON experiment (armed_at);
CREATE INDEX ix_experiment_ended_at ON experiment (ended_at);
CREATE INDEX ix_finding_request_class ON finding (request_class);
CREATE INDEX ix_finding_state ON finding (state);
CREATE INDEX ix_idempotency_at ON idempotency (at);
CREATE INDEX ix_maintenance_until ON maintenance (until);
CREATE INDEX ix_notification_delivered_at ON notification (delivered_at);
CREATE INDEX audit_by_subject ON audit (subject, id);
CREATE INDEX delivery_by_end ON delivery (ended_at, target);
CREATE UNIQUE INDEX run_record_by_class ON run_record (request_class, version, number);
CREATE INDEX ix_replay_kept_at ON replay (kept_at);
CREATE UNIQUE INDEX run_count_by_class ON run_count (request_class, version);
CREATE INDEX experiment_by_creation ON experiment (created_at);
CREATE INDEX experiment_by_campaign ON experiment (campaign_id, created_at);
CREATE INDEX experiment_by_state ON experiment (state, created_at);
CREATE INDEX experiment_by_verdict ON experiment (verdict, created_at);
CREATE INDEX experiment_of_class ON experiment (request_class, created_at);
CREATE INDEX experiment_by_tried ON experiment (tried, verdict, ended_at);
CREATE INDEX experiment_by_run ON experiment (campaign_id, run, created_at);
CREATE UNIQUE INDEX certificate_leaf_by_class ON certificate_leaf (campaign_id, request_class);
COMMIT;
