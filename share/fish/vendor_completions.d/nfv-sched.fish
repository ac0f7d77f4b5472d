# The words before the cursor that are no options, without the program.
function __nfv_sched_words
    set -l tokens (commandline -opc)
    string match --invert -- '-*' $tokens[2..-1]
end

# True at the word that follows those of the argument.
function __nfv_sched_follows
    set -l words (__nfv_sched_words)
    test "$words" = "$argv[1]"
end

# True after the words of the argument.
function __nfv_sched_after
    set -l words (__nfv_sched_words)
    string match --quiet -- "$argv[1] *" "$words "
end

complete -c nfv-sched -f
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'agent' -d ''
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'capacity' -d ''
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'cloud' -d ''
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'complete' -d 'Print a completion function for bash, fish or zsh'
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'flavor' -d ''
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'help' -d 'print detailed help for another command'
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'host' -d ''
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'metrics' -d 'Export metrics of the cloud for Prometheus'
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'plan' -d ''
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'server' -d ''
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'simulation' -d ''
complete -c nfv-sched -n '__nfv_sched_follows \'\'' -a 'snapshot' -d ''
complete -c nfv-sched -n '__nfv_sched_follows \'agent\'' -a 'rebalance' -d 'Plan an even distribution of DHCP servers and routers over agents'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -s f -l format -d 'the output format, defaults to table' -x -a 'commands csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l api -d 'read the cloud by its API alone, with an account, not by ...'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l os-cloud -d 'as --api, with the account of this name in clouds.yaml' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l save -d 'also write the plan to a file, for "plan run FILE"' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l run -d 'with --save'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l yes -d 'with --run'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l dry-run -d 'with --run'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l parallel -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l timeout -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l replan -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l kind -d 'only DHCP servers, or routers' -x -a 'dhcp router'
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l threshold -d 'how much more one agent may carry than another, 1 or more' -x
complete -c nfv-sched -n '__nfv_sched_after \'agent rebalance\'' -l ports -d 'level ports of the virtual switch, not the number'
complete -c nfv-sched -n '__nfv_sched_follows \'capacity\'' -a 'list' -d 'Show how many more servers of each flavor fit, and what limits them'
complete -c nfv-sched -n '__nfv_sched_follows \'capacity\'' -a 'show' -d 'Show how many more servers of a flavor fit on each host, and why'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -s f -l format -d 'the output format, defaults to table' -x -a 'csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l api -d 'read the cloud by its API alone, with an account, not by ...'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l os-cloud -d 'as --api, with the account of this name in clouds.yaml' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l host -d 'only these hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l aggregate -d 'only hosts of these aggregates' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l availability-zone -d 'only hosts of these availability zones' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l like -d 'new servers have the ports of this server' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l ports -d 'new servers have N ports on the virtual switch, on networks ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l network -d 'a network, by name or ID, on which the server has a port' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l image -d 'the image, whose properties are read from Glance' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l image-property -d 'a property of the image' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l project -d 'count for this project, without hosts that aggregates ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l reservation -d 'count in this reservation of OpenStack Blazar, for its ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l flavor -d 'only flavors whose name matches, with * and ?' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l by -d 'a row for all hosts, for each aggregate or for each host' -x -a 'cloud aggregate host'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l empty -d 'add how many would fit if there were no servers'
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l survive -d 'add how many can be booted that still have a host after the ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity list\'' -l mix -d 'show instead how many times these numbers of servers fit ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -s f -l format -d 'the output format, defaults to table' -x -a 'csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l host -d 'only these hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l aggregate -d 'only hosts of these aggregates' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l availability-zone -d 'only hosts of these availability zones' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l like -d 'new servers have the ports of this server' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l ports -d 'new servers have N ports on the virtual switch, on networks ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l network -d 'a network, by name or ID, on which the server has a port' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l image -d 'the image, whose properties are read from Glance' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l image-property -d 'a property of the image' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l project -d 'count for this project, without hosts that aggregates ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l reservation -d 'count in this reservation of OpenStack Blazar, for its ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'capacity show\'' -l next -d 'add the smallest server of each host that would have to ...'
complete -c nfv-sched -n '__nfv_sched_follows \'cloud\'' -a 'audit' -d 'Check placement guarantees and find inconsistent records'
complete -c nfv-sched -n '__nfv_sched_follows \'cloud\'' -a 'defrag' -d 'Plan live migrations that make room for more servers of a flavor'
complete -c nfv-sched -n '__nfv_sched_follows \'cloud\'' -a 'failover' -d 'Check which servers find no host after the loss of a host'
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -s f -l format -d 'the output format, defaults to table' -x -a 'commands csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l host -d 'only these hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l aggregate -d 'only hosts of these aggregates' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l availability-zone -d 'only hosts of these availability zones' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l kind -d 'only findings of these kinds' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud audit\'' -l confirm -d 'of a live cloud, show only what is still so after this time' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -s f -l format -d 'the output format, defaults to table' -x -a 'commands csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l save -d 'also write the plan to a file, for "plan run FILE"' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l run -d 'with --save'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l os-cloud -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l yes -d 'with --run'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l dry-run -d 'with --run'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l parallel -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l timeout -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l replan -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l cold-for-vfs -d 'migrate a server cold if Nova would detach VFs from it ...'
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l flavor -d 'flavor of the new servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l count -d 'number of new servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l max-moves -d 'maximum number of moves' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l avoid -d 'do not move servers with such names, nor servers from or to ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l like -d 'new servers have the ports of this server' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l ports -d 'new servers have N ports on the virtual switch, on networks ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud defrag\'' -l network -d 'a network, by name or ID, on which the server has a port' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -s f -l format -d 'the output format, defaults to table' -x -a 'csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l host -d 'only these hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l aggregate -d 'only hosts of these aggregates' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l availability-zone -d 'only hosts of these availability zones' -x
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l each -d 'lose each of the hosts alone, while all others are up'
complete -c nfv-sched -n '__nfv_sched_after \'cloud failover\'' -l together -d 'lose all of the hosts at once'
complete -c nfv-sched -n '__nfv_sched_after \'complete\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'complete\'' -l name -d 'command to complete' -x
complete -c nfv-sched -n '__nfv_sched_after \'complete\'' -l shell -d 'shell to print it for' -x -a 'bash fish none zsh'
complete -c nfv-sched -n '__nfv_sched_follows \'flavor\'' -a 'explain' -d 'Explain where new servers of a flavor fit, and why not elsewhere'
complete -c nfv-sched -n '__nfv_sched_follows \'flavor\'' -a 'lint' -d 'Find errors and possible improvements in flavors'
complete -c nfv-sched -n '__nfv_sched_follows \'flavor\'' -a 'translate' -d 'Translate flavors of Helion or Titanium Carrier Grade'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -s f -l format -d 'the output format, defaults to table' -x -a 'csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l api -d 'read the cloud by its API alone, with an account, not by ...'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l os-cloud -d 'as --api, with the account of this name in clouds.yaml' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l network -d 'a network, by name or ID, on which the server has a port' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l host -d 'show only these hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l all -d 'show all hosts, however many'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l all-filters -d 'show filters that refuse no host, too'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l for-tenant -d 'print a text for the owner of the server, without names and ...'
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l try-seconds -d 'how long changes of a request that does not fit are tried' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l image -d 'the image, whose properties are read from Glance' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l image-property -d 'a property of the image' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l availability-zone -d 'availability zone' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l group -d 'server group' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor explain\'' -l count -d 'make so many servers by one request, 1000 at most' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -s f -l format -d 'the output format, defaults to table' -x -a 'csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l api -d 'read the cloud by its API alone, with an account, not by ...'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l os-cloud -d 'as --api, with the account of this name in clouds.yaml' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l all -d 'all flavors'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l file -d 'flavors of this file, not of the cloud' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l image -d 'properties of an image' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l image-property -d 'a property of the image' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l hosts -d 'also look whether hosts of the cloud take them'
complete -c nfv-sched -n '__nfv_sched_after \'flavor lint\'' -l used -d 'also look whether servers of the cloud have them'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -s f -l format -d 'the output format, defaults to table' -x -a 'commands csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l api -d 'read the cloud by its API alone, with an account, not by ...'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l os-cloud -d 'as --api, with the account of this name in clouds.yaml' -x
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l all -d 'all flavors'
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l file -d 'flavors of this file, not of the cloud' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l image -d 'properties of an image' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'flavor translate\'' -l image-property -d 'a property of the image' -x
complete -c nfv-sched -n '__nfv_sched_after \'help\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_follows \'host\'' -a 'drain' -d 'Plan draining hosts: each server live, cold or not at all'
complete -c nfv-sched -n '__nfv_sched_follows \'host\'' -a 'list' -d 'List the NUMA nodes of hosts with used and free resources'
complete -c nfv-sched -n '__nfv_sched_follows \'host\'' -a 'map' -d 'Draw a map of hosts: each core with its owner, memory, devices'
complete -c nfv-sched -n '__nfv_sched_follows \'host\'' -a 'profile' -d 'Propose the settings of a new host: CPUs, memory, pages, labels'
complete -c nfv-sched -n '__nfv_sched_follows \'host\'' -a 'show' -d 'Show a host: each core with its owner, memory, devices, servers'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -s f -l format -d 'the output format, defaults to table' -x -a 'commands csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l save -d 'also write the plan to a file, for "plan run FILE"' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l run -d 'with --save'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l os-cloud -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l yes -d 'with --run'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l dry-run -d 'with --run'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l parallel -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l timeout -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l enable-after -d 'with --run'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l replan -d 'with --run' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l cold-for-vfs -d 'migrate a server cold if Nova would detach VFs from it ...'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l aggregate -d 'only hosts of these aggregates' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l availability-zone -d 'only hosts of these availability zones' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l at-once -d 'of several hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l server -d 'move only this server of the host, and do not close the ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l make-room -d 'if no host takes a server, move servers of other hosts ...'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l relax -d 'if no host takes a server, say which of its policies, one ...'
complete -c nfv-sched -n '__nfv_sched_after \'host drain\'' -l shelve -d 'if no host takes a server, shelve it at the end, unless it ...'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -s f -l format -d 'the output format, defaults to table' -x -a 'csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l host -d 'only these hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l aggregate -d 'only hosts of these aggregates' -x
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l availability-zone -d 'only hosts of these availability zones' -x
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l sort -d 'order of the hosts' -x -a 'name free fit worst'
complete -c nfv-sched -n '__nfv_sched_after \'host list\'' -l full -d 'only hosts whose ports or security group rules are used to ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l host -d 'only these hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l aggregate -d 'only hosts of these aggregates' -x
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l availability-zone -d 'only hosts of these availability zones' -x
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l format -d 'of the map' -x -a 'text svg html'
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l max-width -d 'maximum width of the lines of text, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -s o -l output -d 'where to write it' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host map\'' -l facts -d 'a folder with a file for each host, HOST.json or HOST, of ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -s f -l format -d 'the output format, defaults to table' -x -a 'ansible csv json kernel nova.conf ovs table tuned value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l facts -d 'of lscpu, libvirt, Ironic or Ansible' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l sys -d 'where /sys of the machine is, or a copy of it' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l node-memory -d 'memory of each NUMA node in GiB, if the facts lack it' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l check -d 'compare the nova.conf of a running host, or a folder of ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l layout -d 'CPUs and memory of the platform' -x -a 'hcg every-node floating'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l vswitch-cores -d 'physical cores for the virtual switch' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l vswitch-nic -d 'a NIC of the virtual switch, by name or PCI address, and ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l mtu -d 'MTUs of the networks of the switch, for its memory' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l shared -d 'one core of each NUMA node for shared vCPUs'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l pages -d 'huge pages for servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l network-node -d 'DHCP servers or routers run on the host'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l vswitch-label -d 'as in [nfv_sched] vswitch_label of nova-scheduler' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l node-label-prefix -d 'as in [nfv_sched] node_label_prefix of nova-scheduler' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l osds -d 'Ceph OSDs on disks of type hdd, ssd or nvme' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l osds-per-device -d 'OSDs on each NVMe device' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l gb-per-osd -d 'memory of an OSD' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l mb-per-gb -d 'MB in a GB' -x -a '1000 1024'
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l ceph-node -d 'NUMA node of the OSDs' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l guest-gb -d 'memory of an average server' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l utilisation -d 'of the CPUs of an average server, up to 1' -x
complete -c nfv-sched -n '__nfv_sched_after \'host profile\'' -l workload -d '--guest-gb and --utilisation of a usual workload' -x -a 'default many_small_vms few_large_vms nfv_default'
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -s f -l format -d 'the output format, defaults to table' -x -a 'json shell table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l prefix -d 'add a prefix to all variable names' -x
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l api -d 'read the cloud by its API alone, with an account, not by ...'
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l os-cloud -d 'as --api, with the account of this name in clouds.yaml' -x
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'host show\'' -l facts -d 'a folder with a file for each host, HOST.json or HOST, of ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l textfile -d 'write them to this file, once' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l listen -d 'serve them over HTTP, until the command is ended' -x
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l tls-cert -d 'with --listen' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l tls-key -d 'its private key' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l interval -d 'with --listen' -x
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l tls-client-ca -d 'with --tls-cert' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l auth-file -d 'with --listen' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l flavors -d 'count only servers of flavors whose name matches, with * ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l failover -d 'add the servers of each host that would find no place if it ...'
complete -c nfv-sched -n '__nfv_sched_after \'metrics\'' -l journal -d 'directory of the decision journal' -r -F
complete -c nfv-sched -n '__nfv_sched_follows \'plan\'' -a 'run' -d 'Carry out a plan of host drain, cloud defrag or agent rebalance'
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -F
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l os-cloud -d 'the account of this name in clouds.yaml' -x
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l yes -d 'do not ask whether to begin'
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l journal -d 'file that says how far the plan has come' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l round -d 'of a plan of several hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l dry-run -d 'check the plan against the cloud, and change nothing'
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l parallel -d 'maximum number of moves at a time' -x
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l timeout -d 'time after which a move is not waited for any longer' -x
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l enable-after -d 'enable the host again when all moves are made'
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l replan -d 'if a move fails, or the cloud is not as the plan says, plan ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'plan run\'' -l from -d 'the https URL of "snapshot serve", in place of Nova\'s ...' -x
complete -c nfv-sched -n '__nfv_sched_follows \'server\'' -a 'explain' -d 'Explain where a server fits, and why not elsewhere'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -s f -l format -d 'the output format, defaults to table' -x -a 'csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l api -d 'read the cloud by its API alone, with an account, not by ...'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l os-cloud -d 'as --api, with the account of this name in clouds.yaml' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l network -d 'a network, by name or ID, on which the server has a port, ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l host -d 'show only these hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l all -d 'show all hosts, however many'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l all-filters -d 'show filters that refuse no host, too'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l for-tenant -d 'print a text for the owner of the server, without names and ...'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l try-seconds -d 'how long changes of a request that does not fit are tried' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l then -d 'explain the recorded refusal, from [nfv_sched] ...'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l full -d 'with --then and no server'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l shadow -d 'with --then and no server'
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l days -d 'with --shadow' -x
complete -c nfv-sched -n '__nfv_sched_after \'server explain\'' -l journal -d 'with --then' -r -F
complete -c nfv-sched -n '__nfv_sched_follows \'simulation\'' -a 'run' -d 'Simulate a cloud file with Nova\'s own scheduler and claims'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -s f -l format -d 'the output format, defaults to table' -x -a 'csv json table value yaml'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -s c -l column -d 'specify the column(s) to include, can be repeated to show ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l quote -d 'when to include quotes, defaults to nonnumeric' -x -a 'all minimal none nonnumeric'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l noindent -d 'whether to disable indenting the JSON'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l max-width -d 'maximum width of lines, 0 for no limit' -x
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l fit-width -d 'limit the width in a pipe or a file, too'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l print-empty -d 'print the titles if there are no rows'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l sort-column -d 'sort by this column, named by its title or as "pcpus_used"' -x
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l sort-ascending -d 'sort the column(s) in ascending order'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l sort-descending -d 'sort the column(s) in descending order'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -F
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l example -d 'run an example that comes with nfv-sched' -x
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l list-examples -d 'list the examples and where they are'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l add-hosts -d 'as if there were N more hosts like this one, but empty and ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l remove-host -d 'as if there were no such hosts, and none of their servers' -x
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l limit -d 'as if this option of [nfv_sched], a limit such as ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l show -d 'what to show' -x -a 'servers hosts network steps both all'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l reasons -d 'how much a refusal by a filter of nfv-sched says' -x -a 'none policy summary hosts'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l seed -d 'Nova chooses at random among equal hosts' -x
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l save -d 'save the cloud at the end as a snapshot, to be read with ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l anonymize -d 'with --save'
complete -c nfv-sched -n '__nfv_sched_after \'simulation run\'' -l config-file -d 'configuration of nova-scheduler to use, such as nova.conf' -r -F
complete -c nfv-sched -n '__nfv_sched_follows \'snapshot\'' -a 'save' -d 'Save the cloud as it is now to a file'
complete -c nfv-sched -n '__nfv_sched_follows \'snapshot\'' -a 'serve' -d 'Serve a snapshot of the cloud, and metrics, over HTTPS'
complete -c nfv-sched -n '__nfv_sched_after \'snapshot save\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'snapshot save\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'snapshot save\'' -F
complete -c nfv-sched -n '__nfv_sched_after \'snapshot save\'' -l anonymize -d 'replace names and UUIDs'
complete -c nfv-sched -n '__nfv_sched_after \'snapshot save\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -s h -l help -d 'show this help message and exit'
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l max-file-size -d 'maximum size of a file to read, after decompression' -x
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l from -d 'a snapshot, or the https URL of "snapshot serve", or a ...' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l config-file -d 'configuration of nova-scheduler' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l listen -d 'where to listen' -x
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l auth-file -d 'who may read what' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l tls-cert -d 'serve HTTPS with this certificate' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l tls-key -d 'its private key' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l interval -d 'from the start of one reading of the cloud to the start of ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l tls-client-ca -d 'with --tls-cert' -r -F
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l flavors -d 'count only servers of flavors whose name matches, with * ...' -x
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l failover -d 'add the servers of each host that would find no place if it ...'
complete -c nfv-sched -n '__nfv_sched_after \'snapshot serve\'' -l journal -d 'directory of the decision journal' -r -F
