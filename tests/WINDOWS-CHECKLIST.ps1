# SPDX-License-Identifier: Apache-2.0
# The steps of WINDOWS-CHECKLIST.md, 1 to 9, in Windows PowerShell 5.1 without further modules. Nobody has run it on a
# Windows yet. It asks before each step that leaves a trace on the machine, and packs what may be sent into one ZIP.
#
#   powershell -ExecutionPolicy Bypass -File WINDOWS-CHECKLIST.ps1 -Driver C:\t\winpmem_x64.sys -Work E:\t
#
# -Work gets the container, which is the machine's memory: keep it, and send only the ZIP. -Answers gets the files of
# that ZIP; read them before you send them.
param(
    [string]$Ramseal = (Join-Path $PSScriptRoot 'ramseal.exe'),
    [string]$Driver = (Join-Path $PSScriptRoot 'winpmem_x64.sys'),
    [Parameter(Mandatory = $true)][string]$Work,
    [string]$Answers = (Join-Path $PSScriptRoot 'answers'),
    [int]$From = 1
)
Set-StrictMode -Version 2

# --- what is private ---------------------------------------------------------------------------

# A pattern and what takes its place, in the words that .NET's and Python's regular expressions share: the test of this
# file uses them. Putting them in twice changes nothing.
$Private = @(
    @('S-1-[0-9]+(-[0-9]+)+', 'SID'),
    @('(?i)(\\+(?:Users|Documents and Settings)\\+)[^\\/:*?"<>|\r\n]+', '${1}USER'),
    @('(?i)("(?:user|host_name|boot_id|label|serial|volume_label|volume_serial|partition_guid_bytes|command_line)" *: *)"[^"]*"', '${1}"HIDDEN"'),
    @('(?i)\{[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\}', '{GUID}'),
    @('(?i)\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}\b', 'MAC'),
    @('(?i)\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b', 'ADDRESS'),
    @('(?i)\b[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*::[0-9a-f:]*', 'ADDRESS'),
    @('\b(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\b', 'ADDRESS'),
    @('[^ "\\<>@:,;]+@[^ "\\<>@:,;]+\.[A-Za-z]{2,}', 'MAIL')
)
# GUIDs that are the same on every machine: the policies that the steps are about.
$Public = @(
    '{784C4414-79F4-4C32-A6A5-F0FB42A51D0D}', '{8F9CB695-5D48-48D6-A329-7202B44607E3}',
    '{D2BDA982-CCF6-4344-AC5B-0B44427B6816}'
)

# Names of this machine, of whoever uses it, and of all who have a folder or an account here.
function Get-PrivateNames {
    $found = @($env:USERNAME, $env:COMPUTERNAME, $env:USERDOMAIN, $env:USERDNSDOMAIN, [Net.Dns]::GetHostName())
    $found += @(Get-ChildItem -Path (Split-Path $env:PUBLIC) -Directory -Force -ErrorAction SilentlyContinue |
        ForEach-Object { $_.Name })
    $found += @(Get-CimInstance Win32_UserAccount -Filter 'LocalAccount=true' -ErrorAction SilentlyContinue |
        ForEach-Object { $_.Name; $_.FullName })
    $plain = @('Public', 'Default', 'All Users', 'Default User', 'WORKGROUP')
    $found = @($found | Where-Object { $_ -and $plain -notcontains $_ })
    $found += @($found | ForEach-Object { ($_ | ConvertTo-Json).Trim('"') }) # as JSON has them
    @($found | Sort-Object -Unique | Sort-Object -Property Length -Descending)
}

function Hide-Private([string]$Text) {
    foreach ($name in $Names) {
        $Text = [regex]::Replace($Text, '(?i)(?<!\w)' + [regex]::Escape($name) + '(?!\w)', 'NAME')
    }
    for ($i = 0; $i -lt $Public.Count; $i++) { $Text = $Text -ireplace [regex]::Escape($Public[$i]), "PUBLIC-POLICY-$i" }
    foreach ($pair in $Private) { $Text = [regex]::Replace($Text, $pair[0], $pair[1]) }
    for ($i = 0; $i -lt $Public.Count; $i++) { $Text = $Text.Replace("PUBLIC-POLICY-$i", $Public[$i]) }
    $Text
}

function Save-Answer([string]$Name, [string]$Text) {
    [IO.File]::WriteAllText((Join-Path $Answers $Name), (Hide-Private $Text), (New-Object Text.UTF8Encoding $false))
}

# Of a JSON document only these fields, because others have names of programs, or are not known to whoever wrote this.
function Save-Fields([string]$Name, [string]$Json, [string[]]$Fields) {
    try {
        $all = $Json | ConvertFrom-Json
        $kept = New-Object PSObject
        foreach ($field in $Fields) {
            $value = $all
            foreach ($part in $field.Split('.')) {
                if ($null -ne $value -and $value.PSObject.Properties[$part]) { $value = $value.$part } else { $value = $null }
            }
            $kept | Add-Member -MemberType NoteProperty -Name $field -Value $value
        }
        Save-Answer $Name ($kept | ConvertTo-Json -Depth 20)
    } catch {
        Save-Answer $Name "no JSON: $($_.Exception.Message)"
    }
}

# --- running ------------------------------------------------------------------------------------

function Invoke-Tool([string]$Program, [string]$Arguments) {
    $start = New-Object Diagnostics.ProcessStartInfo
    $start.FileName = $Program
    $start.Arguments = $Arguments
    $start.UseShellExecute = $false
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $start.StandardOutputEncoding = [Text.Encoding]::UTF8
    $start.StandardErrorEncoding = [Text.Encoding]::UTF8
    $process = [Diagnostics.Process]::Start($start)
    $out = $process.StandardOutput.ReadToEndAsync()
    $err = $process.StandardError.ReadToEndAsync()
    $process.WaitForExit()
    New-Object PSObject -Property @{ Code = $process.ExitCode; Out = $out.Result; Err = $err.Result }
}

# {driver} and {work} stand for -Driver and -Work, {pid} for this very process.
function Ramseal([string]$Line) {
    $line = $Line.Replace('{driver}', "`"$Driver`"").Replace('{work}', $Work).Replace('{pid}', "$PID")
    Write-Host "    ramseal $line"
    $done = Invoke-Tool $Ramseal $line
    Write-Host "    exit code $($done.Code)"
    $done
}

# True if the step is to be done. A step that leaves a trace is done only if somebody says so.
function Test-Step([int]$Number, [string]$What, [string]$Trace) {
    if ($Number -lt $From) { return $false }
    Write-Host ''
    Write-Host "Step $Number. $What"
    if (-not $Trace) { return $true }
    Write-Host "    Leaves a trace: $Trace"
    (Read-Host '    Do it? [y/N]') -match '^[yY]'
}

# Bytes by the memory manager's own count, in names that no language changes.
function Get-MemoryCount {
    $m = Get-CimInstance Win32_PerfRawData_PerfOS_Memory
    New-Object PSObject -Property @{
        standby  = [uint64]$m.StandbyCacheNormalPriorityBytes + [uint64]$m.StandbyCacheReserveBytes +
            [uint64]$m.StandbyCacheCoreBytes
        modified = [uint64]$m.ModifiedPageListBytes
        cache    = [uint64]$m.CacheBytes
        free     = [uint64]$m.FreeAndZeroPageListBytes
    }
}

function Read-WholeFile([string]$Path) {
    $file = [IO.File]::OpenRead($Path)
    $buffer = New-Object byte[] 1048576
    while ($file.Read($buffer, 0, $buffer.Length)) { }
    $file.Close()
}

# --- the steps ----------------------------------------------------------------------------------

New-Item -ItemType Directory -Force -Path $Answers, $Work | Out-Null
$Names = @(Get-PrivateNames)
$CheckFields = @('go', 'exit_code', 'findings', 'memory_bytes', 'pagefile_list', 'machine.os', 'machine.cpu',
    'machine.memory', 'machine.security', 'driver', 'driver_policy', 'code_integrity', 'driver_forecast',
    'context.driver_evaluation')

if (Test-Step 1 'What ramseal knows of this machine, before anything is loaded' '') {
    $done = Ramseal 'check --json --driver {driver} -o "{work}\one.rsz"'
    Save-Fields '01-check.json' $done.Out $CheckFields
    Save-Answer '01-check.txt' "exit code $($done.Code)`r`n$($done.Err)"
}

if (Test-Step 2 'The Windows Driver Policy, as citool and the registry have it, and the forecast' '') {
    $done = Ramseal 'check --json --citool --driver {driver} -o "{work}\one.rsz"'
    Save-Fields '02-check-citool.json' $done.Out $CheckFields
    $done = Ramseal 'driver inspect --json --citool {driver}'
    Save-Answer '02-inspect.json' $done.Out
    $citool = Join-Path $env:SystemRoot 'System32\citool.exe'
    if (Test-Path $citool) {
        # Without the names, which an enterprise gives its own policies.
        $policies = ((Invoke-Tool $citool '-lp -json').Out | ConvertFrom-Json).Policies |
            Select-Object PolicyID, BasePolicyID, Version, VersionString, PlatformPolicy, IsSystemPolicy, IsOnDisk,
                IsEnforced, IsAuthorized
        Save-Answer '02-citool.json' (ConvertTo-Json @($policies) -Depth 5)
    }
    $key = 'HKLM\SYSTEM\CurrentControlSet\Control\CI\WhqlOnlyEvaluation'
    Save-Answer '02-counters-before.txt' (Invoke-Tool 'reg.exe' "query $key").Out
}

if (Test-Step 3 'Page files, by their volumes and by the handle of System' 'a security product may report this') {
    $done = Ramseal 'pagefiles --json --compare'
    Save-Answer '03-pagefiles.json' $done.Out
    Save-Answer '03-pagefiles.txt' "exit code $($done.Code)`r`n$($done.Err)"
}

if (Test-Step 4 'Load the driver and unload it' ('a service and an event in the log; where the policy is in evaluation, ' +
        'a cross-signed driver starts its count again (step 2 has the forecast)')) {
    $text = ''
    $done = Ramseal 'driver load {driver}'
    $text += "load $($done.Code)`r`n$($done.Out)$($done.Err)"
    $done = Ramseal 'driver status'
    $text += "status $($done.Code)`r`n$($done.Out)$($done.Err)"
    $done = Ramseal 'driver unload'
    $text += "unload $($done.Code)`r`n$($done.Out)$($done.Err)"
    $text += (Invoke-Tool 'reg.exe' 'query HKLM\SYSTEM\CurrentControlSet\Control\CI\WhqlOnlyEvaluation').Out
    Save-Answer '04-driver.txt' $text
}

if (Test-Step 5 'Acquire the memory, and count how much of it the output takes' ('loads the driver, and writes ' +
        'a container as large as the memory to -Work. Close other programs first, and touch nothing meanwhile')) {
    # A known program is this one: blocks of known sizes, which step 7 looks for.
    $Blocks = @(foreach ($size in 40, 200, 1000, 5000, 70000, 600000) {
            foreach ($i in 1..50) {
                @{ Size = $size; Address = [Runtime.InteropServices.Marshal]::AllocHGlobal($size).ToInt64() }
            }
        })
    $before = Get-MemoryCount
    $done = Ramseal 'acquire --log-json --driver {driver} -o "{work}\one.rsz"'
    $after = Get-MemoryCount
    Save-Answer '05-acquire.jsonl' $done.Err
    # The same bytes through the cache: shows that the count can see them.
    Read-WholeFile (Join-Path $Work 'one.rsz')
    $control = Get-MemoryCount
    $counts = New-Object PSObject -Property @{
        exit_code = $done.Code; container = (Get-Item (Join-Path $Work 'one.rsz')).Length
        before = $before; after = $after; control = $control
    }
    Save-Answer '05-memory-count.json' ($counts | ConvertTo-Json -Depth 5)
}

if (Test-Step 6 'The container: is it whole, and what is in it?' '') {
    $done = Ramseal 'verify "{work}\one.rsz"'
    Save-Answer '06-verify.txt' "exit code $($done.Code)`r`n$($done.Out)$($done.Err)"
    $done = Ramseal 'info --json "{work}\one.rsz"'
    Save-Fields '06-info.json' $done.Out @('written_by', 'sealed', 'end', 'exit_code', 'outcome', 'message', 'source',
        'maps', 'maps_at_end', 'withheld', 'driver', 'driver_forecast', 'code_integrity', 'stays_awake', 'sleeps',
        'clock_steps', 'parts', 'memory_changes', 'usage', 'pages', 'ranges', 'unreadable', 'skipped', 'missing_pages',
        'os', 'cpu', 'memory', 'security', 'system.os', 'system.build', 'system.levels', 'system.kernel_dtb_origin',
        'ntoskrnl', 'paging_files', 'processes_compared.agree')
    $done = Ramseal 'smear --json "{work}\one.rsz"'
    Save-Fields '06-smear.json' $done.Out @('layout', 'levels', 'page_files', 'slots_doubt', 'slot_map_doubts',
        'applicable', 'why', 'total')
}

if ((Test-Path variable:Blocks) -and (Test-Step 7 'The heap of a program that is known: this one' '')) {
    $done = Ramseal 'heap --allocations --json --pid {pid} "{work}\one.rsz"'
    $sizes = @{}
    foreach ($line in $done.Out -split "`n") {
        if ($line -notmatch '"state": ?"busy"') { continue }
        if (-not ($line -match '"address": ?"0x([0-9a-f]+)"')) { continue }
        $address = [Convert]::ToInt64($Matches[1], 16)
        # What was asked for, where the heap knows it; else what can be used, which is a little more.
        if ($line -match '"requested": ?([0-9]+)') { $sizes[$address] = @([int64]$Matches[1], 0) }
        elseif ($line -match '"size": ?([0-9]+)') { $sizes[$address] = @([int64]$Matches[1], 4096) }
    }
    $right = 0; $other = 0; $missing = 0
    foreach ($block in $Blocks) {
        if (-not $sizes.ContainsKey($block.Address)) { $missing++; continue }
        $found, $slack = $sizes[$block.Address]
        if ($found -ge $block.Size -and $found -le $block.Size + $slack) { $right++ } else { $other++ }
    }
    Save-Answer '07-heap.txt' ("exit code $($done.Code)`r`nblocks of ours: $right right, $other of another size, " +
        "$missing missing; $($sizes.Count) busy blocks in all`r`n$($done.Err)")
}

if (Test-Step 8 'What is left' '') {
    $text = (Ramseal 'driver status').Out
    $services = (Invoke-Tool 'sc.exe' 'query type= driver state= all').Out -split "`n" | Where-Object { $_ -match 'ramseal_' }
    $folders = Get-ChildItem $env:SystemRoot -Filter 'ramseal_*' | ForEach-Object { $_.Name }
    Save-Answer '08-left.txt' ("$text`r`nservices: $services`r`nfolders: $folders")
}

if (Test-Step 9 'Pack the answers' '') {
    $unclean = @(Get-ChildItem $Answers -File | Where-Object {
            $text = [IO.File]::ReadAllText($_.FullName)
            (Hide-Private $text) -cne $text
        })
    if ($unclean.Count) {
        Write-Host "    Not packed: something private is still in $($unclean.Name -join ', ')"
        exit 1
    }
    $zip = "$Answers.zip"
    if (Test-Path $zip) { Remove-Item $zip }
    Add-Type -AssemblyName System.IO.Compression.FileSystem
    [IO.Compression.ZipFile]::CreateFromDirectory($Answers, $zip)
    Write-Host "    $zip; read it before you send it"
}
