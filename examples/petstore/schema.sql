create table pets (id int primary key, name text);
insert into pets select n, 'pet ' || n from generate_series(1, 40) n;
create table orders (id serial primary key, pet int);
insert into orders (pet) select n from generate_series(1, 40) n;
