-- `upload` sends reports; `admin` also sets policies. A server's own token is one of these.
alter table tokens
    drop constraint tokens_scope_check,
    add constraint tokens_scope_check check (scope in ('upload', 'admin'));
-- Named by the path of their file, which servers on several hosts may share. Each server brings its own at its start.
delete from tokens where name like 'file %';
