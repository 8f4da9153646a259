"""sacctmgr and sshare: what the database has of accounts, read only."""
